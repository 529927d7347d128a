// Keeps the entities equal to the daemon's: a snapshot true at a number, then every
// event after it. Survives dropped sockets, daemon restarts and a log that starts anew.

import { beat, Stream, type Cursor, type EndReason, type SocketLike, type StreamOptions, type StreamState } from "#client/stream";
import { statusOf, words, type Api } from "./api";
import { applyDelta, applyEvent } from "./apply";
import { Entities } from "./entities";
import { GateWatch } from "./gatewatch";
import type { Delta } from "./model";
import { Peeks } from "./peeks";

export type Link = "connecting" | "live" | "reconnecting" | "signed-out" | "gone" | "outdated";

export interface SyncHooks {
  /** Something was touched; draw at the next frame. */
  changed(): void;
  link(state: Link): void;
}

export type TreeState = "loading" | "ready" | "missing" | "failed";

/** Where the stream comes from; tests give their own sockets and clock. */
export type Wire = Pick<StreamOptions, "baseUrl" | "open" | "clock">;

const pageSize = 80;
const listSize = 60;
const retryAfter = 1500;

const endings: Partial<Record<EndReason, Link>> = { "signed-out": "signed-out", origin: "signed-out", gone: "gone" };

export class Sync {
  entities = new Entities();
  link: Link = "connecting";
  listState: "loading" | "ready" | "failed" = "loading";
  nextCursor: string | undefined;
  readonly treeStates = new Map<string, TreeState>();
  readonly gate: GateWatch;
  private readonly peeks: Peeks;

  private stream: Stream | undefined;
  private closed = false;
  private wasLive = false;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly retries = new Set<() => void>();
  private readonly mending = new Map<string, Delta[]>();
  private heardAt = Date.now();

  constructor(
    readonly api: Api,
    private readonly wire: Wire,
    readonly workspace: string,
    private readonly hooks: SyncHooks,
  ) {
    const current = () => this.entities;
    this.gate = new GateWatch(api, workspace, current, hooks.changed);
    this.peeks = new Peeks(api, workspace, current, hooks.changed);
  }

  async start(): Promise<void> {
    try {
      await this.loadList(this.entities);
    } catch (error) {
      this.listState = "failed";
      this.notify("list");
      this.failed(error, () => void this.start());
      return;
    }
    if (this.closed) return;
    this.stream = new Stream({
      ...this.wire,
      open: (url) => this.listen((this.wire.open ?? ((at) => new WebSocket(at)))(url)),
      workspace: this.workspace,
      from: { seq: this.entities.seq, epoch: this.entities.epoch },
      snapshot: () => this.anew(),
      onEvent: (event) => {
        applyEvent(this.entities, event);
        this.hooks.changed();
      },
      onDelta: (delta) => this.takeDelta(delta),
      onState: (state) => this.takeState(state),
    });
    this.stream.start();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    this.gate.stop();
    this.stream?.close();
  }

  /**
   * Up to when what is known was surely true. A line that breaks tells so at once; one that
   * went dead without a word was so since the last thing that was heard.
   */
  trueAt(): number {
    return Date.now() - this.heardAt > beat + 3000 ? this.heardAt : Date.now();
  }

  private listen(socket: SocketLike): SocketLike {
    if (socket instanceof EventTarget) socket.addEventListener("message", () => (this.heardAt = Date.now()));
    return socket;
  }

  /** The network is back or the page is looked at again: connects now if it would have waited. */
  wake(): void {
    this.stream?.resume();
    if (this.retry !== undefined) this.again();
  }

  /** Loads a root with everything below it, and keeps it from then on. */
  async openTree(rootId: string): Promise<void> {
    const known = this.treeStates.get(rootId);
    if (known === "loading" || known === "ready") return;
    const e = this.entities;
    e.trees.add(rootId); // before the request: events that pass meanwhile must not be lost
    this.setTree(rootId, "loading");
    try {
      await this.loadTree(e, rootId);
      if (e === this.entities) this.setTree(rootId, "ready");
    } catch (error) {
      if (e !== this.entities) return;
      const missing = statusOf(error) === 404;
      this.setTree(rootId, missing ? "missing" : "failed");
      if (!missing) this.failed(error, () => void this.openTree(rootId));
    }
  }

  /** Loads the newest messages of a session. */
  async openThread(sessionId: string): Promise<void> {
    const e = this.entities;
    const known = e.threads.get(sessionId)?.state;
    if (known === "loading" || known === "loaded") return;
    e.setThread(sessionId, { state: "loading", error: "" });
    this.hooks.changed();
    try {
      await this.loadPage(e, sessionId, {});
    } catch (error) {
      e.setThread(sessionId, { state: "failed", error: words(error) });
      if (statusOf(error) !== 404) this.failed(error, () => void this.openThread(sessionId));
    }
    this.hooks.changed();
  }

  /** Loads the page before the oldest message that is here. */
  async openOlder(sessionId: string): Promise<void> {
    const e = this.entities;
    const thread = e.threads.get(sessionId);
    const oldest = e.messages.get(thread?.ids[0] ?? "");
    if (thread?.state !== "loaded" || !thread.hasBefore || !oldest) return;
    e.setThread(sessionId, { state: "loading", error: "" });
    this.hooks.changed();
    try {
      await this.loadPage(e, sessionId, { before: oldest.seq });
    } catch (error) {
      e.setThread(sessionId, { state: "loaded", error: words(error) });
    }
    this.hooks.changed();
  }

  /** Asks for a session's newest message, for the line of its lane. */
  peek(sessionId: string): void {
    this.peeks.ask(sessionId);
  }

  async moreSessions(): Promise<void> {
    if (this.nextCursor) await this.loadList(this.entities, this.nextCursor);
  }

  /** Sessions that match, beyond those at hand. Their ids, for the filter. */
  async search(q: string): Promise<string[]> {
    const page = await this.api.sessions(this.workspace, { q, limit: listSize });
    for (const s of page.items) this.entities.putSession(s, page.seq);
    this.hooks.changed();
    return page.items.map((s) => s.id);
  }

  /**
   * Runs a command and stores what it answered. The answer is at least as new as what
   * was known when it was asked; an event that came meanwhile is newer and stays.
   */
  async command<T>(run: () => Promise<T>, store: (e: Entities, seq: number, answer: T) => void): Promise<T> {
    const e = this.entities;
    const seq = e.seq;
    try {
      const answer = await run();
      store(e, seq, answer);
      this.hooks.changed();
      return answer;
    } catch (error) {
      if (statusOf(error) === 401) this.end("signed-out");
      throw error;
    }
  }

  private async loadList(e: Entities, cursor?: string): Promise<void> {
    const page = await this.api.sessions(this.workspace, { limit: listSize, ...(cursor ? { cursor } : {}) });
    for (const s of page.items) e.putSession(s, page.seq);
    if (!cursor) e.seq = page.seq;
    this.nextCursor = page.nextCursor;
    this.listState = "ready";
    e.touch("list", "seq");
    this.hooks.changed();
  }

  private async loadTree(e: Entities, rootId: string): Promise<void> {
    const asked = e.seq;
    const [detail, interactions, turns, processes, stops] = await Promise.all([
      this.api.detail(this.workspace, rootId),
      this.api.interactions(this.workspace, rootId),
      this.api.turns(this.workspace, rootId, 100),
      this.api.processes(this.workspace, rootId),
      this.api.stops(this.workspace, rootId),
    ]);
    e.epoch = detail.epoch;
    for (const s of [detail.session, ...detail.childSessions]) e.putSession(s, detail.seq);
    for (const turn of turns.items) e.putTurn(turn, asked);
    for (const i of interactions) e.putInteraction(i, asked);
    for (const p of processes) e.putProcess(p, asked);
    for (const o of stops.items) e.putOperation(o, stops.seq);
    e.whole.add(rootId);
    e.touch("list", "prompts", `tree:${rootId}`);
    this.hooks.changed();
  }

  private async loadPage(e: Entities, sessionId: string, range: { before?: number }): Promise<void> {
    const asked = e.seq;
    const page = await this.api.messages(this.workspace, sessionId, { ...range, limit: pageSize });
    if (!e.threads.has(sessionId)) return; // deleted meanwhile
    for (const m of page.items) e.putMessage(m, asked);
    e.setThread(sessionId, { state: "loaded", hasBefore: page.hasBefore });
  }

  private takeDelta(delta: Delta): void {
    const held = this.mending.get(delta.messageId);
    if (held) {
      held.push(delta);
      return;
    }
    const verdict = applyDelta(this.entities, delta);
    if (verdict === "gap") void this.mend(delta);
    if (verdict === "applied") this.hooks.changed();
  }

  /** Text before a delta is missing: reads the message, then adds what came meanwhile. */
  private async mend(delta: Delta): Promise<void> {
    const held = [delta];
    this.mending.set(delta.messageId, held);
    const e = this.entities;
    const asked = e.seq;
    try {
      e.putMessage(await this.api.message(this.workspace, delta.agentSessionId, delta.messageId), asked);
    } catch {
      // The committed message will come as an event.
    }
    this.mending.delete(delta.messageId);
    for (const d of held) applyDelta(e, d);
    this.hooks.changed();
  }

  /**
   * The log began anew, or no longer reaches back: reads everything that is open and
   * swaps it in at once, so that nothing goes blank. Says where it is true.
   */
  private async anew(): Promise<Cursor> {
    const old = this.entities;
    const next = new Entities();
    for (const id of old.trees) next.trees.add(id);
    try {
      await this.loadList(next);
      for (const id of old.trees) await this.loadTree(next, id).catch(ignoreMissing);
      for (const [id, thread] of old.threads) {
        if (thread.state === "failed" || !next.sessions.has(id)) continue;
        next.setThread(id, { state: "loading" });
        await this.loadPage(next, id, {});
      }
    } catch (error) {
      if (statusOf(error) === 401 || statusOf(error) === 403) this.end("signed-out");
      throw error; // the stream tries again
    }
    this.entities = next;
    this.peeks.forget();
    for (const id of old.trees) this.treeStates.set(id, next.whole.has(id) ? "ready" : "missing");
    next.touch("*");
    this.hooks.changed();
    return { seq: next.seq, epoch: next.epoch };
  }

  private takeState(state: StreamState): void {
    switch (state.is) {
      case "live":
        this.wasLive = true;
        this.entities.epoch = this.stream?.cursor?.epoch ?? this.entities.epoch;
        if (this.retry !== undefined) this.again();
        return this.setLink("live");
      case "connecting":
        return this.setLink(this.wasLive ? "reconnecting" : "connecting");
      case "waiting":
        return this.setLink("reconnecting");
      case "ended":
        if (this.closed) return;
        return this.end(endings[state.reason]);
    }
  }

  private setTree(rootId: string, state: TreeState): void {
    this.treeStates.set(rootId, state);
    this.notify(`tree:${rootId}`);
  }

  private notify(key: string): void {
    this.entities.touch(key);
    this.hooks.changed();
  }

  private setLink(state: Link): void {
    if (this.link === state) return;
    this.link = state;
    this.hooks.link(state);
  }

  /** Nothing helps but the person: stops trying, and says so. */
  private end(link: Link = "outdated"): void {
    this.close();
    this.setLink(link);
  }

  private again(): void {
    clearTimeout(this.retry);
    this.retry = undefined;
    const due = [...this.retries];
    this.retries.clear();
    for (const run of due) run();
  }

  /** A read failed. Without a right to read there is nothing to try again; else it is tried. */
  private failed(error: unknown, again: () => void): void {
    if (this.closed) return;
    const status = statusOf(error);
    if (status === 401 || status === 403) return this.end("signed-out");
    if (status === 404) return this.end("gone");
    if (this.link === "connecting") this.setLink("reconnecting");
    this.retries.add(again);
    this.retry ??= setTimeout(() => this.again(), retryAfter);
  }
}

function ignoreMissing(error: unknown): void {
  if (statusOf(error) !== 404) throw error;
}
