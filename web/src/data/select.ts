// Questions about the entities that views ask. Pure: no signals, no DOM, no clock but
// the one that is given.

import type { Entities } from "./entities";
import type { Interaction, Message, Operation, Session, Target, Turn, Usage } from "./model";
import { clip, count, gist, lastLine } from "../lib/text";

/** How a session stands, as one word that has a glyph, a colour and a name. */
export type State =
  | "ask"
  | "working"
  | "waiting"
  | "submitted"
  | "stopping"
  | "completed"
  | "failed"
  | "canceled"
  | "interrupted"
  | "idle";

export const stateWords: Record<State, string> = {
  ask: "needs you",
  working: "working",
  waiting: "waiting for agents",
  submitted: "not started",
  stopping: "stopping",
  completed: "completed",
  failed: "failed",
  canceled: "canceled",
  interrupted: "interrupted",
  idle: "ready",
};

export function latestTurn(e: Entities, sessionId: string): Turn | undefined {
  const id = e.latest.get(sessionId);
  return id === undefined ? undefined : e.turns.get(id);
}

export type LiveTurn = Turn & { phase: Exclude<Turn["phase"], "settled"> };

export function isLive(turn: Turn | undefined): turn is LiveTurn {
  return turn !== undefined && turn.phase !== "settled";
}

export function childrenOf(e: Entities, sessionId: string): Session[] {
  return (e.children.get(sessionId) ?? []).flatMap((id) => e.sessions.get(id) ?? []);
}

/** Every session below this one, parents before their children. */
export function descendants(e: Entities, sessionId: string): Session[] {
  return childrenOf(e, sessionId).flatMap((child) => [child, ...descendants(e, child.id)]);
}

/** The sessions from the root down to this one, both included. */
export function ancestry(e: Entities, sessionId: string): Session[] {
  const path: Session[] = [];
  for (let s = e.sessions.get(sessionId); s; s = e.sessions.get(s.parentAgentSessionId ?? "")) path.unshift(s);
  return path;
}

/** Sessions below a root that belong to one of its turns: created under it, or run again. */
export function agentsOf(e: Entities, rootId: string, turnId: string): Session[] {
  return descendants(e, rootId).filter((s) => s.rootTurnId === turnId || latestTurn(e, s.id)?.rootTurnId === turnId);
}

export function liveAgentsOf(e: Entities, rootId: string, turnId: string): Session[] {
  return descendants(e, rootId).filter((s) => {
    const turn = latestTurn(e, s.id);
    return isLive(turn) && turn.rootTurnId === turnId;
  });
}

/** How many agents of a root turn are open. The root's own counter covers trees that are not loaded. */
export function liveAgentCount(e: Entities, rootId: string, turnId: string): number {
  const seen = liveAgentsOf(e, rootId, turnId).length;
  return e.whole.has(rootId) ? seen : Math.max(seen, e.sessions.get(rootId)?.activeChildCount ?? 0);
}

export function isOpen(i: Interaction): boolean {
  return i.status === "pending" || i.status === "answering";
}

/** All questions of one session, oldest first. */
export function promptsOf(e: Entities, sessionId: string): Interaction[] {
  const keys = e.asked.get(sessionId) ?? [];
  return keys.flatMap((key) => e.interactions.get(key) ?? []).sort(byCreation);
}

export function openPromptsOf(e: Entities, sessionId: string): Interaction[] {
  return promptsOf(e, sessionId).filter(isOpen);
}

/** Questions that still need a person, everywhere this page knows of. */
export function pendingPrompts(e: Entities): Interaction[] {
  return [...e.interactions.values()].filter((i) => i.status === "pending").sort(byCreation);
}

/** How many questions of a tree need a person. The root's own counter covers trees that are not loaded. */
export function pendingIn(e: Entities, rootId: string): number {
  if (!e.whole.has(rootId)) return e.sessions.get(rootId)?.pendingInteractionCount ?? 0;
  return pendingPrompts(e).filter((i) => e.rootOf(i.agentSessionId) === rootId).length;
}

/** How one child stands, from its own latest turn and nothing else. */
export function stateOf(e: Entities, sessionId: string): State {
  if (openPromptsOf(e, sessionId).some((i) => i.status === "pending")) return "ask";
  return stateOfTurn(latestTurn(e, sessionId), childrenOf(e, sessionId).some((c) => isLive(latestTurn(e, c.id))));
}

/** How a root stands in the list. Never an end while anything below it is open. */
export function stateOfRoot(e: Entities, rootId: string): State {
  if (pendingIn(e, rootId) > 0) return "ask";
  const turn = latestTurn(e, rootId);
  const agents = turn ? liveAgentCount(e, rootId, turn.id) : 0;
  if (turn && !isLive(turn) && agents > 0) return "waiting";
  return stateOfTurn(turn, agents > 0 && turn?.providerTurn?.phase === "ended");
}

function stateOfTurn(turn: Turn | undefined, childrenHold: boolean): State {
  if (!turn) return "idle";
  switch (turn.phase) {
    case "submitted":
      return "submitted";
    case "running":
      return "working";
    case "waiting":
      return childrenHold ? "waiting" : "working";
    case "settling":
      return "stopping";
    case "settled":
      return turn.outcome ?? "interrupted";
  }
}

export interface Groups {
  needsYou: Session[];
  working: Session[];
  earlier: Session[];
}

/** The session list by what the person must do. Roots only; rows stay where they are while work goes on. */
export function grouped(e: Entities, matches: (s: Session) => boolean = () => true): Groups {
  const groups: Groups = { needsYou: [], working: [], earlier: [] };
  const roots = [...e.sessions.values()].filter((s) => s.kind === "root" && matches(s));
  const began = (s: Session) => Date.parse(latestTurn(e, s.id)?.createdAt ?? s.createdAt);
  roots.sort((a, b) => Number(b.pinned ?? false) - Number(a.pinned ?? false) || began(b) - began(a));
  for (const session of roots) {
    const state = stateOfRoot(e, session.id);
    if (state === "ask") groups.needsYou.push(session);
    else if (isLive(latestTurn(e, session.id)) || state === "waiting") groups.working.push(session);
    else groups.earlier.push(session);
  }
  return groups;
}

/** How many of these sessions stand how, in the order a person cares about. */
export function tally(e: Entities, sessions: readonly Session[]): [State, number][] {
  const order: State[] = ["ask", "working", "waiting", "submitted", "stopping", "failed", "interrupted", "canceled", "completed"];
  const counts = new Map<State, number>();
  for (const s of sessions) {
    const state = stateOf(e, s.id);
    counts.set(state, (counts.get(state) ?? 0) + 1);
  }
  return order.flatMap((state) => (counts.has(state) ? [[state, counts.get(state)!] as [State, number]] : []));
}

/** The newest stop that names this turn, with what is known of the turn in it. */
export function stopOf(e: Entities, turnId: string): { operation: Operation; target: Target } | undefined {
  let found: { operation: Operation; target: Target } | undefined;
  for (const operation of e.operations.values()) {
    if (operation.kind !== "cancel" || (found && byCreation(found.operation, operation) > 0)) continue;
    const target = operation.targets.find((t) => t.turnId === turnId);
    if (target) found = { operation, target };
  }
  return found;
}

/**
 * The main agent's own end came after the turn had been stopped without it: while the
 * stop was under way it neither confirmed nor ended. It says nothing of how the turn ended.
 */
export function endedLate(e: Entities, turn: Turn): boolean {
  const part = turn.providerTurn;
  if (turn.outcome !== "canceled" || part?.phase !== "ended" || part.outcome === "canceled") return false;
  return stopOf(e, turn.id)?.target.state === "interrupted";
}

/** Stops asked for on one root turn or anything under it, oldest first. */
export function stopsUnder(e: Entities, rootId: string, rootTurnId: string): Operation[] {
  return [...e.operations.values()]
    .filter((o) => o.kind === "cancel" && e.rootOf(o.agentSessionId) === rootId)
    .filter((o) => o.targets.some((t) => e.turns.get(t.turnId)?.rootTurnId === rootTurnId || t.turnId === rootTurnId))
    .sort(byCreation);
}

export function newestMessage(e: Entities, sessionId: string): Message | undefined {
  const thread = e.threads.get(sessionId);
  const id = thread?.ids.length ? thread.ids[thread.ids.length - 1] : e.peeks.get(sessionId);
  return id === undefined ? undefined : e.messages.get(id);
}

/** What a lane says below its title: the question, the latest work, or how it ended. */
export function activity(e: Entities, sessionId: string): string {
  const prompt = openPromptsOf(e, sessionId)[0];
  const turn = latestTurn(e, sessionId);
  if (prompt) return prompt.status === "answering" ? "your answer is on its way" : "waits for your answer";
  if (!turn) return "";
  if (turn.phase === "settled") return ending(e, sessionId, turn);
  if (turn.phase === "settling") return stopping(e, turn);
  if (turn.phase === "submitted") return "not started yet";
  const below = childrenOf(e, sessionId).filter((c) => isLive(latestTurn(e, c.id))).length;
  const newest = newestMessage(e, sessionId);
  const doing = newest?.childSessionId ? "" : latestWork(newest); // a delegation: its lane says more
  if (below > 0 && turn.phase === "waiting") return `waiting for ${count(below, "agent")} of its own`;
  return doing || (below > 0 ? `working with ${count(below, "agent")} of its own` : "working");
}

/** One line about a message: what is being run, or the last thing said. */
export function latestWork(message: Message | undefined): string {
  if (!message || message.role === "user") return "";
  switch (message.kind) {
    case "tool_call": {
      const what = message.title || message.name || "a tool";
      const said = message.output ? lastLine(message.output, 120) : "";
      return said ? `${clip(what, 120)} · ${said}` : clip(what, 200);
    }
    case "thinking":
      return message.status === "streaming" ? "thinking" : lastLine(message.content);
    default:
      return lastLine(message.content);
  }
}

function stopping(e: Entities, turn: Turn): string {
  const stop = stopOf(e, turn.id);
  if (!stop) return "stopping";
  return stop.target.state === "acknowledged" ? "stopping: it took the request" : "stopping: asked, no word yet";
}

function ending(e: Entities, sessionId: string, turn: Turn): string {
  const stop = stopOf(e, turn.id);
  switch (turn.outcome) {
    case "failed":
      return turn.error?.message ?? "failed";
    case "canceled":
      return "stopped, and it confirmed";
    case "interrupted":
      if (stop) return "interrupted: it was asked to stop and did not confirm";
      return turn.error?.message ?? "interrupted: its end was never seen";
    default:
      return result(e, sessionId);
  }
}

/** What a completed child came back with: the call's output, else its last words. */
function result(e: Entities, sessionId: string): string {
  const newest = newestMessage(e, sessionId);
  if (newest && newest.role === "assistant" && newest.content) return gist(newest.content);
  const call = delegatingCall(e, sessionId);
  if (call?.output) return gist(call.output);
  return latestWork(newest) || "completed";
}

/** The tool call of the parent that created this session, where it is loaded. */
export function delegatingCall(e: Entities, sessionId: string): Message | undefined {
  const session = e.sessions.get(sessionId);
  const ids = e.threads.get(session?.parentAgentSessionId ?? "")?.ids ?? [];
  for (const id of ids) {
    const m = e.messages.get(id);
    if (m?.kind !== "tool_call") continue;
    if (m.childSessionId === sessionId || (m.callId && m.callId === session?.parentToolCallId)) return m;
  }
  return undefined;
}

/** Silent since, where the daemon says so and nothing has come since. */
export function stalledSince(e: Entities, turn: Turn): string | undefined {
  const gate = e.gates.get(turn.rootTurnId);
  return gate?.openChildren.find((c) => c.turnId === turn.id)?.stalledSince;
}

/** Tokens of a session: its own sum, or its turn's where that is ahead. */
export function usageOf(e: Entities, session: Session): Usage {
  const turn = latestTurn(e, session.id)?.usage;
  return turn && tokens(turn) > tokens(session.usage) ? turn : session.usage;
}

export function tokens(u: Usage): number {
  return u.inputTokens + u.outputTokens;
}

// Rows that carry no sequence number are shown in the order of their times. For people
// only: nothing is decided by it.
function byCreation(a: { createdAt: string }, b: { createdAt: string }): number {
  return Date.parse(a.createdAt) - Date.parse(b.createdAt);
}
