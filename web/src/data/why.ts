// The line above the composer: the one place that answers "is it done?". It names what
// is waited for in words a person would use, and says no end while anything is open.

import type { Entities } from "./entities";
import type { Operation, Outcome, Session, Turn } from "./model";
import type { State } from "./select";
import {
  agentsOf,
  isLive,
  latestTurn,
  liveAgentCount,
  liveAgentsOf,
  newestMessage,
  openPromptsOf,
  stalledSince,
  stopOf,
  stopsUnder,
} from "./select";
import { lastNotice } from "./notices";
import { clip, count, list } from "../lib/text";
import { clock, roughly, stopwatch } from "../lib/time";

export interface Why {
  state: State;
  /** The answer, one sentence. */
  head: string;
  /** What goes with it; may be empty. */
  tail: string;
}

/** At most this many agents are named; the rest is counted. */
const named = 3;

export function whyOpen(e: Entities, rootId: string, now: number): Why {
  const turn = latestTurn(e, rootId);
  if (!turn) return { state: "idle", head: "Ready.", tail: "" };
  const open = liveAgentsOf(e, rootId, turn.id);
  const live = liveAgentCount(e, rootId, turn.id);
  if (!isLive(turn) && live === 0) return ended(e, rootId, turn);
  if (turn.phase === "settling") return stopping(e, rootId, turn, open, now);
  const own = openPromptsOf(e, rootId)[0];
  const agents = waitingFor(e, open, now);
  if (own) {
    const head = own.status === "answering" ? "Your answer is on its way." : "The main agent needs your answer.";
    return { state: own.status === "answering" ? "working" : "ask", head, tail: sentence([clip(own.title, 120), ...agents]) };
  }
  const asks = open.some((s) => openPromptsOf(e, s.id).some((i) => i.status === "pending"));
  const total = Math.max(agentsOf(e, rootId, turn.id).length, live);
  if (mainRuns(turn)) {
    const doing = work(e, rootId);
    if (live === 0) {
      if (turn.phase === "submitted") return { state: "submitted", head: "Sent.", tail: "The main agent has not started yet." };
      return { state: "working", head: "The main agent is working.", tail: doing ? sentence([`it is running ${doing}`]) : sentence(said(e, rootId, turn.id, "its")) };
    }
    return { state: asks ? "ask" : "working", head: `The main agent and ${of(live, total)} are working.`, tail: sentence([...agents, ...said(e, rootId, turn.id, "the main agent’s")]) };
  }
  if (live > 0) {
    return { state: asks ? "ask" : "waiting", head: `Waiting for ${of(live, total)}.`, tail: sentence(agents) };
  }
  if (!e.whole.has(rootId)) return { state: "waiting", head: "Still open.", tail: "" };
  return reserved(e, turn, now);
}

/** Whether the main agent itself still works: its provider turn runs, or has yet to begin. */
function mainRuns(turn: Turn): boolean {
  return isLive(turn) && (turn.providerTurn === undefined || turn.providerTurn.phase === "running");
}

function of(open: number, total: number): string {
  return open === total ? count(open, "agent") : `${open} of ${count(total, "agent")}`;
}

/** Every agent is done, the main agent may still speak: a reserved continuation. */
function reserved(e: Entities, turn: Turn, now: number): Why {
  const gate = e.gates.get(turn.id);
  if (turn.providerTurn?.phase !== "reserved" && !gate?.continuation) {
    return { state: "waiting", head: "All agents have ended.", tail: "The turn is about to end." };
  }
  const left = gate?.continuation ? Date.parse(gate.continuation.deadline) - now : NaN;
  const kept = gate?.retainedOutcome ?? (turn.providerTurn?.phase === "ended" ? turn.providerTurn.outcome : undefined);
  const until = left > 0 ? ` within ${roughly(left + 999)}` : "";
  const then = kept ? ` If it stays silent, the turn ends as ${kept}.` : "";
  return {
    state: "waiting",
    head: "All agents have ended.",
    tail: `The main agent is expected to sum up${until}.${then}`,
  };
}

function stopping(e: Entities, rootId: string, turn: Turn, open: Session[], now: number): Why {
  const operation = stopsUnder(e, rootId, turn.id).findLast((o) => o.targets.some((t) => t.turnId === turn.id));
  if (!operation) {
    return { state: "stopping", head: "Stopping.", tail: open.length ? sentence([`${few(namesOf(open))} ${open.length === 1 ? "is" : "are"} being stopped`]) : "" };
  }
  if (operation.status === "failed") {
    return { state: "failed", head: "The stop failed; the turn is still open.", tail: operation.error?.message ?? "Try again." };
  }
  const silent = operation.targets.filter((t) => t.state === "requested").length;
  const sure = operation.targets.length - silent;
  const left = operation.deadline ? Date.parse(operation.deadline) - now : NaN;
  const bound = left > 0 ? `; in ${roughly(left + 999)} at the latest the turn ends with what is known then` : "";
  const tail = silent === 0 ? "Every agent has answered." : `${sure} of ${operation.targets.length} have answered${bound}.`;
  return { state: "stopping", head: "Stopping.", tail };
}

const endings: Record<Outcome, string> = {
  completed: "Completed",
  failed: "Failed",
  canceled: "Canceled",
  interrupted: "Interrupted",
};

function ended(e: Entities, rootId: string, turn: Turn): Why {
  const outcome = turn.outcome ?? "interrupted";
  const from = Date.parse(turn.startedAt ?? turn.createdAt);
  const time = turn.settledAt ? Date.parse(turn.settledAt) - from : NaN;
  const took = time < 1000 ? " at once" : turn.settledAt ? ` after ${stopwatch(time)}` : "";
  const agents = agentsOf(e, rootId, turn.id);
  const parts: string[] = [];
  if (turn.error) parts.push(turn.error.message.replace(/\.$/, ""));
  const loose = namesOf(agents.filter((s) => latestTurn(e, s.id)?.outcome === "interrupted"));
  const failed = namesOf(agents.filter((s) => latestTurn(e, s.id)?.outcome === "failed"));
  if (outcome === "canceled" && stopOf(e, turn.id)?.target.state === "interrupted") loose.unshift("the main agent");
  if (agents.length > 0 && loose.length + failed.length === 0 && outcome === "completed") parts.push(`with ${count(agents.length, "agent")}`);
  if (failed.length > 0) parts.push(`${few(failed)} failed`);
  if (loose.length > 0 && outcome === "canceled") parts.push(`${few(loose)} did not confirm the stop`);
  else if (loose.length > 0) parts.push(`${few(loose)} ${loose.length === 1 ? "was" : "were"} interrupted`);
  return { state: outcome, head: `${endings[outcome]}${took}.`, tail: sentence(parts) };
}

/** One that was asked to stop and is counted as ended without its word. */
export const unconfirmed = "asked; no confirmation came";

/** A stop in the words its evidence allows. */
export function stopWords(operation: Operation): string {
  const loose = operation.targets.filter((t) => t.state === "interrupted").length;
  switch (operation.status) {
    case "pending":
      return operation.attempts > 0 ? "asked again, waiting for the next attempt" : "recorded, about to be sent";
    case "running":
      return "sent, waiting for the agents";
    case "succeeded":
      return "confirmed";
    case "unconfirmed":
      if (loose === 1 && operation.targets.length === 1) return unconfirmed;
      return loose > 0 ? `${loose} of ${operation.targets.length} did not confirm` : "not confirmed by the provider";
    case "failed":
      return operation.error?.message ?? "could not be delivered";
  }
}

/** One clause per open agent, those that need the person first. */
function waitingFor(e: Entities, open: readonly Session[], now: number): string[] {
  const clauses = open.map((s) => clause(e, s, now)).sort((a, b) => a.rank - b.rank);
  const shown = clauses.length > named + 1 ? clauses.slice(0, named) : clauses;
  const rest = clauses.length - shown.length;
  return [...shown.map((c) => c.text), ...(rest > 0 ? [`${rest} more are open`] : [])];
}

function clause(e: Entities, session: Session, now: number): { rank: number; text: string } {
  const name = nameOf(session);
  const turn = latestTurn(e, session.id);
  const prompt = openPromptsOf(e, session.id)[0];
  if (prompt?.status === "pending") return { rank: 0, text: `${name} needs your answer` };
  if (prompt) return { rank: 1, text: `${name} is getting your answer` };
  const silent = turn ? stalledSince(e, turn) : undefined;
  if (silent) return { rank: 1, text: `${name} has said nothing for ${roughly(now - Date.parse(silent))}` };
  switch (turn?.phase) {
    case "settling":
      return { rank: 2, text: `${name} is being stopped` };
    case "submitted":
      return { rank: 3, text: `${name} has not started yet` };
    case "waiting":
      return { rank: 4, text: `${name} waits for its own agents` };
    default: {
      const doing = work(e, session.id);
      const notice = turn && lastNotice(e, session.id, turn.id);
      if (notice) return { rank: 1, text: `${name} says “${clip(notice.message.content, 100)}”` };
      return { rank: 2, text: doing ? `${name} is running ${doing}` : `${name} is working` };
    }
  }
}

/** The notice that is the newest of a session, if one is: what it tries over and over says more than that it works. */
function said(e: Entities, sessionId: string, turnId: string, whose: string): string[] {
  const last = lastNotice(e, sessionId, turnId);
  if (!last) return [];
  const times = last.times > 1 ? `, ${last.times} times, last at ${clock(last.message.createdAt, true)}` : ` at ${clock(last.message.createdAt, true)}`;
  return [`${whose} last notice: “${clip(last.message.content, 160)}”${times}`];
}

/** The tool that a session runs right now, if its newest message is one. */
function work(e: Entities, sessionId: string): string {
  const m = newestMessage(e, sessionId);
  if (m?.kind !== "tool_call" || m.status !== "streaming" || m.childSessionId) return "";
  return clip(m.title || m.name || "a tool", 48);
}

export function nameOf(session: Session): string {
  return session.title || session.agentType || (session.kind === "root" ? "Untitled" : "An agent");
}

function namesOf(sessions: readonly Session[]): string[] {
  return sessions.map(nameOf);
}

/** Some names, and how many more there are. */
function few(names: readonly string[]): string {
  const rest = names.length - named;
  return list(rest > 0 ? [...names.slice(0, named), `${rest} more`] : names);
}

function sentence(clauses: readonly string[]): string {
  const text = clauses.filter((c) => c !== "").join("; ");
  return text === "" ? "" : text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?…]$/.test(text) ? "" : ".");
}
