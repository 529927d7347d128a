// A daemon in memory: a log, an API that answers from it, and a stream that can be cut.

import type { Api } from "../src/data/api";
import { ProblemError, Unreachable } from "../src/data/api";
import type { SocketLike } from "#client/stream";
import { applyEvent } from "../src/data/apply";
import { Entities } from "../src/data/entities";
import type { Delta, Session } from "../src/data/model";
import { descendants, latestTurn } from "../src/data/select";
import { Sync, type Link } from "../src/data/sync";
import { vi } from "vitest";
import { Log, type Kind } from "./fixtures";

export function refusal(status: number, code: string): ProblemError {
  return new ProblemError(status, { type: `urn:${code}`, title: code, status, code, detail: `Refused: ${code}.` });
}

/** One socket as the page sees it, and the daemon's end of it. */
class FakeSocket implements SocketLike {
  onopen: SocketLike["onopen"] = null;
  onmessage: SocketLike["onmessage"] = null;
  onclose: SocketLike["onclose"] = null;
  onerror: SocketLike["onerror"] = null;
  sent = 0;
  ready = false;

  constructor(private readonly daemon: FakeDaemon) {
    queueMicrotask(() => (daemon.refuses ? this.drop(1006) : this.onopen?.({} as never)));
  }

  send(data: string): void {
    this.daemon.hello(this, JSON.parse(data) as { after: number; epoch?: string });
  }

  close(): void {
    this.ready = false;
    this.daemon.sockets.delete(this);
  }

  drop(code: number): void {
    this.close();
    this.onclose?.({ code } as never);
  }

  frame(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) } as never);
  }
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
  /** No socket opens. */
  refuses = false;
  readonly sockets = new Set<FakeSocket>();

  constructor() {
    this.state.trees.add("R");
  }

  commit(kind: Kind, data: { id?: string; agentSessionId?: string }): void {
    const event = this.log.add(kind, data);
    this.state.threads.get(event.agentSessionId) ?? this.state.setThread(event.agentSessionId, { state: "loaded", hasBefore: false });
    applyEvent(this.state, event);
    for (const s of this.sockets) this.pump(s);
  }

  delta(delta: Omit<Delta, "type">): void {
    for (const s of this.sockets) if (s.ready) s.frame({ type: "delta", ...delta });
  }

  heartbeat(): void {
    for (const s of this.sockets) if (s.ready) s.frame({ type: "heartbeat", seq: this.seq });
  }

  /** Cuts every socket, and opens none until told to. */
  cut(): void {
    this.refuses = true;
    for (const s of [...this.sockets]) s.drop(1006);
  }

  /** Sockets open again; the pages come back by themselves. */
  async reconnect(): Promise<void> {
    this.refuses = false;
    await vi.advanceTimersByTimeAsync(10_000);
  }

  /** Lets the held answers go, as they are true now or when they were asked. */
  release(): void {
    for (const answer of this.held.splice(0)) answer();
  }

  /** A socket to this daemon. */
  readonly wire = {
    baseUrl: "http://daemon.test/",
    open: (): SocketLike => {
      const s = new FakeSocket(this);
      this.sockets.add(s);
      return s;
    },
  };

  readonly api = {
    sessions: () => this.answer("sessions", () => ({ items: this.rows().filter((s) => s.kind === "root"), seq: this.seq })),
    detail: (_: string, id: string) =>
      this.answer(`detail ${id}`, () => {
        const session = this.state.sessions.get(id);
        if (!session) throw refusal(404, "not_found");
        return { session: this.row(session), childSessions: descendants(this.state, id).map((s) => this.row(s)), seq: this.seq, epoch: this.epoch };
      }),
    turns: (_: string, id: string) => this.answer("turns", () => ({ items: [...this.state.turns.values()].filter((t) => t.agentSessionId === id) })),
    processes: () => this.answer("processes", () => [...this.state.processes.values()]),
    interactions: () => this.answer("interactions", () => [...this.state.interactions.values()]),
    stops: () => this.answer("stops", () => ({ items: [...this.state.operations.values()].filter((o) => o.kind === "cancel"), seq: this.seq })),
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

  hello(s: FakeSocket, { after, epoch }: { after: number; epoch?: string }): void {
    if ((epoch !== undefined && epoch !== this.epoch) || after < this.oldest - 1) {
      s.frame({ type: "reset", epoch: this.epoch, seq: this.seq, reason: epoch === this.epoch ? "retention" : "epoch" });
      return;
    }
    s.sent = after;
    s.ready = true;
    s.frame({ type: "ready", epoch: this.epoch, seq: this.seq, mode: "replay" });
    this.pump(s);
  }

  private pump(s: FakeSocket): void {
    while (s.ready && s.sent < this.seq) s.frame(this.log.events[s.sent++]!);
  }

  private answer<T>(name: string, make: () => T): Promise<T> {
    this.calls.push(name);
    if (this.down) return Promise.reject(new Unreachable());
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
  const sync = new Sync(daemon.api, daemon.wire, "ws", { changed: () => undefined, link: (l) => links.push(l) });
  return { sync, links };
}

/** Lets every answer that is ready be taken. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) await Promise.resolve();
}
