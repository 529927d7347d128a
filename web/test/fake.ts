// A daemon in memory: a log, an API that answers from it, and a stream that can be cut.

import type { Api } from "../src/data/api";
import { ApiError } from "../src/data/api";
import { applyEvent } from "../src/data/apply";
import { Entities } from "../src/data/entities";
import type { Delta, LogEvent, Session } from "../src/data/model";
import { descendants, latestTurn } from "../src/data/select";
import type { Link, OpenStream, StreamHandlers } from "../src/data/socket";
import { Sync } from "../src/data/sync";
import { Log, type Kind } from "./fixtures";

interface Connection {
  handlers: StreamHandlers;
  sent: number;
  open: boolean;
}

export class FakeDaemon {
  readonly log = new Log();
  readonly state = new Entities();
  epoch = "e1";
  oldest = 1;
  /** Answers are given only when the test says so. */
  hold = false;
  down = false;
  readonly calls: string[] = [];
  private readonly held: (() => void)[] = [];
  private readonly connections: Connection[] = [];

  constructor() {
    this.state.trees.add("R");
  }

  commit(kind: Kind, data: { id?: string; agentSessionId?: string }): void {
    const event = this.log.add(kind, data);
    this.state.threads.get(event.agentSessionId) ?? this.state.setThread(event.agentSessionId, { state: "loaded", hasBefore: false });
    applyEvent(this.state, event);
    for (const c of this.connections) this.pump(c);
  }

  delta(delta: Omit<Delta, "type">): void {
    for (const c of this.connections) if (c.open) c.handlers.delta({ type: "delta", ...delta });
  }

  /** Cuts every socket. */
  cut(): void {
    for (const c of this.connections) {
      if (!c.open) continue;
      c.open = false;
      c.handlers.link("reconnecting");
    }
  }

  /** Every cut socket connects again. */
  reconnect(): void {
    for (const c of this.connections) if (!c.open) this.hello(c);
  }

  /** Lets the held answers go, as they are true now or when they were asked. */
  release(): void {
    for (const answer of this.held.splice(0)) answer();
  }

  readonly stream: OpenStream = (_, handlers) => {
    const c: Connection = { handlers, sent: 0, open: false };
    this.connections.push(c);
    handlers.link("connecting");
    this.hello(c);
    return {
      close: () => {
        c.open = false;
        this.connections.splice(this.connections.indexOf(c), 1);
      },
      resume: () => this.hello(c),
    };
  };

  readonly api = {
    sessions: () => this.answer("sessions", () => ({ items: this.rows().filter((s) => s.kind === "root"), seq: this.seq })),
    detail: (_: string, id: string) =>
      this.answer(`detail ${id}`, () => {
        const session = this.state.sessions.get(id);
        if (!session) throw new ApiError(404, "not_found", "No such session.");
        return { session: this.row(session), childSessions: descendants(this.state, id).map((s) => this.row(s)), seq: this.seq, epoch: this.epoch };
      }),
    turns: (_: string, id: string) => this.answer("turns", () => ({ items: [...this.state.turns.values()].filter((t) => t.agentSessionId === id) })),
    interactions: () => this.answer("interactions", () => [...this.state.interactions.values()]),
    messages: (_: string, id: string, range: { before?: number; limit: number }) =>
      this.answer(`messages ${id}`, () => {
        const all = (this.state.threads.get(id)?.ids ?? []).flatMap((m) => this.state.messages.get(m) ?? []);
        const below = all.filter((m) => range.before === undefined || m.seq < range.before);
        const items = below.slice(-range.limit);
        return { items, hasBefore: items.length < below.length, hasAfter: false };
      }),
    message: (_: string, __: string, id: string) => this.answer(`message ${id}`, () => this.state.messages.get(id)!),
    gate: () => this.answer("gate", () => ({ turnId: "T", phase: "running", openChildren: [] })),
    events: () => this.answer("events", () => ({ items: this.log.events })),
  } as unknown as Api;

  get seq(): number {
    return this.log.events.length;
  }

  private hello(c: Connection): void {
    const { after, epoch } = c.handlers.cursor();
    c.open = true;
    if ((epoch !== "" && epoch !== this.epoch) || after < this.oldest - 1) {
      c.handlers.reset(epoch === this.epoch ? "retention" : "epoch");
      return;
    }
    c.sent = after;
    c.handlers.ready(this.epoch);
    c.handlers.link("live");
    this.pump(c);
  }

  private pump(c: Connection): void {
    while (c.open && c.sent < this.seq) c.handlers.event(this.log.events[c.sent++] as LogEvent);
  }

  private answer<T>(name: string, make: () => T): Promise<T> {
    this.calls.push(name);
    if (this.down) return Promise.reject(new ApiError(0, "unreachable", "The daemon cannot be reached."));
    let value: T;
    try {
      value = structuredClone(make()); // true at the time it was asked
    } catch (error) {
      return Promise.reject(error);
    }
    if (!this.hold) return Promise.resolve(value);
    return new Promise((resolve) => this.held.push(() => resolve(value)));
  }

  private rows(): Session[] {
    return [...this.state.sessions.values()].map((s) => this.row(s));
  }

  private row(s: Session): Session {
    const latest = latestTurn(this.state, s.id);
    return { ...s, ...(latest ? { latestTurn: latest } : {}) };
  }
}

export interface Page {
  sync: Sync;
  links: Link[];
}

export function page(daemon: FakeDaemon): Page {
  const links: Link[] = [];
  const sync = new Sync(daemon.api, daemon.stream, "ws", { changed: () => undefined, link: (l) => links.push(l) });
  return { sync, links };
}

/** Lets every answer that is ready be taken. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}
