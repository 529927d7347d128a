// Keeps the entities equal to the daemon's: a snapshot true at a number, then every
// event after it. Survives dropped sockets, daemon restarts and a log that starts anew.

import type { Api } from "./api";
import { ApiError } from "./api";
import { applyDelta, applyEvent } from "./apply";
import { Entities } from "./entities";
import type { Delta, LogEvent } from "./model";
import { isLive, latestTurn } from "./select";
import type { Link, OpenStream, Stream } from "./socket";

export interface SyncHooks {
  /** Something was touched; draw at the next frame. */
  changed(): void;
  link(state: Link): void;
}

export type TreeState = "loading" | "ready" | "missing" | "failed";

const pageSize = 80;
const listSize = 60;
/** Lanes may ask for their newest message; so many at a time. */
const peeksAtOnce = 4;
const gateDelay = 400;

export class Sync {
  entities = new Entities();
  link: Link = "connecting";
  listState: "loading" | "ready" | "failed" = "loading";
  nextCursor: string | undefined;
  readonly treeStates = new Map<string, TreeState>();

  private stream: Stream | undefined;
  private closed = false;
  private gaps = 0;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private readonly retries = new Set<() => void>();
  private readonly peekQueue: string[] = [];
  private readonly peeked = new Set<string>();
  private peeking = 0;
  private readonly mending = new Map<string, Delta[]>();
  private gateTimer: ReturnType<typeof setTimeout> | undefined;
  private watched: string | undefined;

  constructor(
    readonly api: Api,
    private readonly open: OpenStream,
    readonly workspace: string,
    private readonly hooks: SyncHooks,
  ) {}

  async start(): Promise<void> {
    try {
      await this.loadList(this.entities);
    } catch (error) {
      this.failed(error, () => void this.start());
      this.listState = "failed";
      this.notify("list");
      return;
    }
    if (!this.closed) this.connect();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.retry);
    clearTimeout(this.gateTimer);
    this.stream?.close();
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
      const missing = error instanceof ApiError && error.status === 404;
      this.setTree(rootId, missing ? "missing" : "failed");
      if (!missing) this.failed(error, () => void this.openTree(rootId));
    }
  }

  /** Loads the newest messages of a session. */
  async openThread(sessionId: string): Promise<void> {
    const e = this.entities;
    const known = e.threads.get(sessionId)?.state;
    if (known === "loading" || known === "loaded") return;
    e.setThread(sessionId, { state: "loading" });
    this.hooks.changed();
    try {
      await this.loadPage(e, sessionId, {});
    } catch (error) {
      e.setThread(sessionId, { state: "failed", error: words(error) });
      this.failed(error, () => void this.openThread(sessionId));
    }
    this.hooks.changed();
  }

  /** Loads the page before the oldest message that is here. */
  async openOlder(sessionId: string): Promise<void> {
    const e = this.entities;
    const thread = e.threads.get(sessionId);
    const oldest = e.messages.get(thread?.ids[0] ?? "");
    if (thread?.state !== "loaded" || !thread.hasBefore || !oldest) return;
    e.setThread(sessionId, { state: "loading" });
    this.hooks.changed();
    try {
      await this.loadPage(e, sessionId, { before: oldest.seq });
    } catch (error) {
      e.setThread(sessionId, { state: "loaded", error: words(error) });
    }
    this.hooks.changed();
  }

  /** Asks for a session's newest message, for the line of its lane. Once, and not many at a time. */
  peek(sessionId: string): void {
    const e = this.entities;
    if (this.peeked.has(sessionId) || e.threads.has(sessionId) || e.peeks.has(sessionId)) return;
    this.peeked.add(sessionId);
    this.peekQueue.push(sessionId);
    this.pumpPeeks();
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

  /** The root whose gate is kept fresh. */
  watch(rootId: string | undefined): void {
    this.watched = rootId;
    this.scheduleGate(0);
  }

  /** Called with what a frame drew: a change in the watched tree may change its gate. */
  noticed(keys: ReadonlySet<string>): void {
    if (this.watched !== undefined && keys.has(`tree:${this.watched}`)) this.scheduleGate(gateDelay);
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
      if (error instanceof ApiError && error.status === 401) this.signedOut();
      throw error;
    }
  }

  private async loadList(e: Entities, cursor?: string): Promise<void> {
    const page = await this.api.sessions(this.workspace, { limit: listSize, ...(cursor ? { cursor } : {}) });
    for (const s of page.items) e.putSession(s, page.seq);
    if (e.seq === 0) e.seq = page.seq;
    this.nextCursor = page.nextCursor;
    this.listState = "ready";
    e.touch("list");
    this.hooks.changed();
  }

  private async loadTree(e: Entities, rootId: string): Promise<void> {
    const asked = e.seq;
    const [detail, interactions, turns] = await Promise.all([
      this.api.detail(this.workspace, rootId),
      this.api.interactions(this.workspace, rootId),
      this.api.turns(this.workspace, rootId, 100),
    ]);
    e.epoch ||= detail.epoch;
    for (const s of [detail.session, ...detail.childSessions]) e.putSession(s, detail.seq);
    for (const turn of turns.items) e.putTurn(turn, asked);
    for (const i of interactions) e.putInteraction(i, asked);
    e.whole.add(rootId);
    e.touch("list", "prompts", `tree:${rootId}`);
    this.hooks.changed();
    await this.recallStops(e, rootId);
  }

  /** Stops asked for before this page was opened have no list; the log still tells of them. */
  private async recallStops(e: Entities, rootId: string): Promise<void> {
    const turn = latestTurn(e, rootId);
    const stopped = turn?.phase === "settling" || turn?.outcome === "canceled";
    if (!stopped || e.seq === 0) return;
    const span = 500;
    try {
      const { items } = await this.api.events(this.workspace, Math.max(0, e.seq - span), span);
      for (const event of items) {
        if (event.kind === "operation.updated") e.putOperation(event.data, event.seq);
      }
    } catch {
      // The evidence is an extra; the turn's own state is here already.
    }
  }

  private async loadPage(e: Entities, sessionId: string, range: { before?: number }): Promise<void> {
    const asked = e.seq;
    const page = await this.api.messages(this.workspace, sessionId, { ...range, limit: pageSize });
    const older = range.before !== undefined;
    const thread = e.threads.get(sessionId);
    if (!thread) return; // deleted meanwhile
    for (const m of page.items) e.putMessage(m, asked);
    e.setThread(sessionId, { state: "loaded", hasBefore: page.hasBefore, ...(older ? {} : { error: "" }) });
  }

  private pumpPeeks(): void {
    while (this.peeking < peeksAtOnce && this.peekQueue.length > 0) {
      const id = this.peekQueue.shift()!;
      this.peeking++;
      const e = this.entities;
      const asked = e.seq;
      this.api
        .messages(this.workspace, id, { limit: 1 })
        .then((page) => {
          for (const m of page.items) e.putMessage(m, asked);
          this.hooks.changed();
        })
        .catch(() => this.peeked.delete(id))
        .finally(() => {
          this.peeking--;
          this.pumpPeeks();
        });
    }
  }

  private connect(): void {
    this.stream?.close();
    this.stream = this.open(this.workspace, {
      cursor: () => ({ after: this.entities.seq, epoch: this.entities.epoch }),
      ready: (epoch) => {
        this.entities.epoch = epoch;
        this.scheduleGate(0);
      },
      event: (event) => this.takeEvent(event),
      delta: (delta) => this.takeDelta(delta),
      reset: () => void this.resync(),
      link: (state) => this.setLink(state),
    });
  }

  private takeEvent(event: LogEvent): void {
    const e = this.entities;
    if (event.seq > e.seq + 1) return this.missed();
    this.gaps = 0;
    applyEvent(e, event);
    this.hooks.changed();
  }

  /** A number was left out. Ask again from the last one; if that does not help, start anew. */
  private missed(): void {
    if (this.gaps++ < 3) this.stream?.resume();
    else void this.resync();
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

  /** Reads everything that is open anew, and swaps it in at once: nothing goes blank. */
  private async resync(): Promise<void> {
    this.stream?.close();
    this.setLink("reconnecting");
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
      this.failed(error, () => void this.resync());
      return;
    }
    if (this.closed) return;
    this.entities = next;
    this.peeked.clear();
    this.gaps = 0;
    for (const id of old.trees) this.treeStates.set(id, next.sessions.has(id) ? "ready" : "missing");
    next.touch("*");
    this.hooks.changed();
    this.connect();
  }

  private scheduleGate(delay: number): void {
    if (this.gateTimer !== undefined && delay > 0) return;
    clearTimeout(this.gateTimer);
    this.gateTimer = setTimeout(() => {
      this.gateTimer = undefined;
      void this.loadGate();
    }, delay);
  }

  private async loadGate(): Promise<void> {
    const rootId = this.watched;
    const e = this.entities;
    if (this.closed || rootId === undefined) return;
    const turn = latestTurn(e, rootId);
    if (!isLive(turn)) return;
    try {
      e.putGate(await this.api.gate(this.workspace, rootId, turn.id), rootId);
      this.hooks.changed();
    } catch {
      // The line falls back to what the entities say.
    }
    // Silence makes no event, so an open turn is asked about now and then.
    this.gateTimer ??= setTimeout(() => {
      this.gateTimer = undefined;
      void this.loadGate();
    }, 15_000);
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

  private signedOut(): void {
    this.close();
    this.setLink("signed-out");
  }

  private again(): void {
    this.retry = undefined;
    const due = [...this.retries];
    this.retries.clear();
    for (const run of due) run();
  }

  /** A read failed. Without a right to read there is nothing to try again; else it is tried. */
  private failed(error: unknown, again: () => void): void {
    if (this.closed) return;
    if (error instanceof ApiError) {
      if (error.status === 401 || error.status === 403) return this.signedOut();
      if (error.status === 404) return this.setLink("gone");
    }
    if (this.link === "connecting") this.setLink("reconnecting");
    this.retries.add(again);
    this.retry ??= setTimeout(() => this.again(), 1500);
  }
}

function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function ignoreMissing(error: unknown): void {
  if (!(error instanceof ApiError && error.status === 404)) throw error;
}
