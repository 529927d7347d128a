import type { Gate, Interaction, Message, Operation, Process, Session, Turn } from "./model";

/**
 * Names of what can change, for whoever draws it: `list` (the roots), `tree:ROOT`
 * (sessions, turns, questions and operations of one tree), `prompts` (all questions),
 * `gate:ROOT`, `thread:SESSION` (which messages there are), `act:SESSION` (what any of them says),
 * `msg:MESSAGE` (one message's content).
 */
export type Key = string;

/** The messages of one session as far as they are loaded, always up to the newest. */
export interface Thread {
  state: "loading" | "loaded" | "failed";
  ids: string[];
  hasBefore: boolean;
  error?: string;
}

export function interactionKey(i: { agentSessionId: string; turnId: string; requestId: string }): string {
  return `${i.agentSessionId}/${i.turnId}/${i.requestId}`;
}

/**
 * Everything this page knows of one workspace, normalised.
 *
 * Every entity remembers the sequence number it is true at. An older word never
 * replaces a newer one, so a snapshot may arrive while events flow, in any order, and
 * the result is the same. Clocks decide nothing.
 */
export class Entities {
  /** Newest event applied: where the stream resumes. */
  seq = 0;
  epoch = "";

  readonly sessions = new Map<string, Session>();
  readonly turns = new Map<string, Turn>();
  readonly messages = new Map<string, Message>();
  readonly threads = new Map<string, Thread>();
  readonly interactions = new Map<string, Interaction>();
  /** Keys of the questions of each session. */
  readonly asked = new Map<string, string[]>();
  readonly operations = new Map<string, Operation>();
  /** Commands that outlived their turns, by session and id. */
  readonly processes = new Map<string, Process>();
  readonly gates = new Map<string, Gate>();
  /** Children by parent session, in order of arrival. */
  readonly children = new Map<string, string[]>();
  /** Latest turn by session. */
  readonly latest = new Map<string, string>();
  /** Newest message of a session whose thread is not loaded: its line of activity. */
  readonly peeks = new Map<string, string>();
  /** Roots whose whole tree is kept. Of the others only the root itself is. */
  readonly trees = new Set<string>();
  /** Of these, the ones whose snapshot is in: what is not here does not exist. */
  readonly whole = new Set<string>();
  readonly deleted = new Set<string>();
  /** Kinds of event this view does not know, with how many came. */
  readonly unknown = new Map<string, number>();

  readonly touched = new Set<Key>();
  private readonly at = new Map<string, number>();

  touch(...keys: Key[]): void {
    for (const key of keys) this.touched.add(key);
  }

  rootOf(sessionId: string): string {
    return this.sessions.get(sessionId)?.rootAgentSessionId ?? sessionId;
  }

  putSession(session: Session, seq: number): void {
    if (this.deleted.has(session.id)) return;
    const root = session.rootAgentSessionId ?? session.id;
    if (session.kind === "child" && !this.trees.has(root)) return;
    for (const turn of [session.latestTurn, session.activeTurn]) if (turn) this.putTurn(turn, seq);
    const latest = session.activeTurn ?? session.latestTurn;
    if (latest) this.setLatest(session.id, latest.id, seq);
    if (!this.newer(`s:${session.id}`, seq)) return;
    if (!this.sessions.has(session.id) && session.parentAgentSessionId) {
      const siblings = this.children.get(session.parentAgentSessionId) ?? [];
      this.children.set(session.parentAgentSessionId, [...siblings, session.id]);
    }
    this.sessions.set(session.id, session);
    this.touch(`tree:${root}`);
    if (session.kind === "root") this.touch("list");
  }

  putTurn(turn: Turn, seq: number): void {
    if (this.deleted.has(turn.agentSessionId) || !this.newer(`t:${turn.id}`, seq)) return;
    this.turns.set(turn.id, turn);
    const root = this.rootOf(turn.agentSessionId);
    this.touch(`tree:${root}`);
    if (root === turn.agentSessionId) this.touch("list");
  }

  /** Called for a turn that was just created: it is its session's latest from now on. */
  setLatest(sessionId: string, turnId: string, seq: number): void {
    if (this.newer(`l:${sessionId}`, seq)) this.latest.set(sessionId, turnId);
  }

  putInteraction(i: Interaction, seq: number): void {
    const key = interactionKey(i);
    if (this.deleted.has(i.agentSessionId) || !this.newer(`i:${key}`, seq)) return;
    if (!this.interactions.has(key)) this.asked.set(i.agentSessionId, [...(this.asked.get(i.agentSessionId) ?? []), key]);
    this.interactions.set(key, i);
    this.touch("prompts", `tree:${this.rootOf(i.agentSessionId)}`);
  }

  putOperation(op: Operation, seq: number): void {
    if (this.deleted.has(op.agentSessionId) || !this.newer(`o:${op.id}`, seq)) return;
    this.operations.set(op.id, op);
    this.touch(`tree:${this.rootOf(op.agentSessionId)}`);
  }

  putProcess(p: Process, seq: number): void {
    const key = `${p.agentSessionId}/${p.id}`;
    if (this.deleted.has(p.agentSessionId) || !this.newer(`p:${key}`, seq)) return;
    this.processes.set(key, p);
    this.touch(`tree:${this.rootOf(p.agentSessionId)}`);
  }

  putGate(gate: Gate, sessionId: string): void {
    this.gates.set(gate.turnId, gate);
    this.touch(`gate:${this.rootOf(sessionId)}`);
  }

  putMessage(message: Message, seq: number): void {
    if (this.deleted.has(message.agentSessionId)) return;
    const thread = this.threads.get(message.agentSessionId);
    if (thread ? !this.enter(thread, message) : !this.peek(message)) return;
    const old = this.messages.get(message.id);
    if (!this.newer(`m:${message.id}`, seq)) return;
    this.messages.set(message.id, keepStreamed(old, message));
    this.touch(`msg:${message.id}`, `act:${message.agentSessionId}`);
    // A tool call may have found its child: the thread is grouped anew.
    if (old && old.childSessionId !== message.childSessionId) this.touch(`thread:${message.agentSessionId}`);
  }

  setThread(sessionId: string, change: Partial<Thread>): Thread {
    const old = this.threads.get(sessionId) ?? { state: "loading", ids: this.adoptPeek(sessionId), hasBefore: false };
    const thread = { ...old, ...change };
    this.threads.set(sessionId, thread);
    this.touch(`thread:${sessionId}`);
    return thread;
  }

  /** A streaming message's text as the stream grew it; it has no number of its own. */
  setStreamed(message: Message, content: string): Message {
    const grown = { ...message, content };
    this.messages.set(message.id, grown);
    this.touch(`msg:${message.id}`, `act:${message.agentSessionId}`);
    return grown;
  }

  /** Removes a session with everything below it, and lets nothing of it come back. */
  remove(sessionId: string): void {
    for (const child of this.children.get(sessionId) ?? []) this.remove(child);
    const root = this.rootOf(sessionId);
    const parent = this.sessions.get(sessionId)?.parentAgentSessionId;
    this.deleted.add(sessionId);
    this.sessions.delete(sessionId);
    this.threads.delete(sessionId);
    this.peeks.delete(sessionId);
    this.children.delete(sessionId);
    this.latest.delete(sessionId);
    this.asked.delete(sessionId);
    this.trees.delete(sessionId);
    this.whole.delete(sessionId);
    if (parent) this.children.set(parent, (this.children.get(parent) ?? []).filter((id) => id !== sessionId));
    drop(this.turns, sessionId);
    drop(this.messages, sessionId);
    drop(this.interactions, sessionId);
    drop(this.operations, sessionId);
    drop(this.processes, sessionId);
    this.touch("list", "prompts", `tree:${root}`, `thread:${sessionId}`);
  }

  /** Whether a word at seq is newer than the last one about this entity; remembers it if so. */
  private newer(key: string, seq: number): boolean {
    if (seq < (this.at.get(key) ?? -1)) return false;
    this.at.set(key, seq);
    return true;
  }

  /** Puts a message into its place in the thread. False: it belongs to a page not loaded. */
  private enter(thread: Thread, message: Message): boolean {
    if (this.messages.has(message.id)) return true;
    const ids = thread.ids;
    let i = ids.length;
    while (i > 0 && (this.messages.get(ids[i - 1]!)?.seq ?? 0) > message.seq) i--;
    if (i === 0 && ids.length > 0 && thread.hasBefore && thread.state === "loaded") return false;
    ids.splice(i, 0, message.id);
    this.touch(`thread:${message.agentSessionId}`);
    return true;
  }

  /** Keeps the newest message of a session in an open tree. */
  private peek(message: Message): boolean {
    const session = message.agentSessionId;
    if (!this.trees.has(this.rootOf(session))) return false;
    const old = this.peeks.get(session);
    const known = old === undefined ? undefined : this.messages.get(old);
    if (known && known.id !== message.id) {
      if (known.seq > message.seq) return false;
      this.messages.delete(known.id);
    }
    this.peeks.set(session, message.id);
    return true;
  }

  private adoptPeek(sessionId: string): string[] {
    const id = this.peeks.get(sessionId);
    this.peeks.delete(sessionId);
    return id !== undefined && this.messages.has(id) ? [id] : [];
  }
}

/** The committed text of a message that still streams may be behind what was streamed. */
function keepStreamed(old: Message | undefined, next: Message): Message {
  if (!old || next.status !== "streaming") return next;
  return old.content.length > next.content.length && old.content.startsWith(next.content)
    ? { ...next, content: old.content }
    : next;
}

function drop<T extends { agentSessionId: string }>(map: Map<string, T>, sessionId: string): void {
  for (const [key, value] of map) if (value.agentSessionId === sessionId) map.delete(key);
}
