// Builders for entities, with every field a test does not care about filled in.

import { applyEvent } from "../src/data/apply";
import { Entities } from "../src/data/entities";
import type { Interaction, LogEvent, Message, Operation, Session, Turn, Usage } from "../src/data/model";

export const t0 = Date.parse("2026-03-01T12:00:00Z");
export const at = (seconds: number): string => new Date(t0 + seconds * 1000).toISOString();

export const noUsage: Usage = { inputTokens: 0, cachedInputTokens: 0, outputTokens: 0, reasoningTokens: 0, costMicros: 0 };

export function turn(id: string, session: string, change: Partial<Turn> = {}): Turn {
  return {
    id,
    agentSessionId: session,
    rootTurnId: id,
    trigger: "user",
    phase: "running",
    usage: noUsage,
    createdAt: at(0),
    startedAt: at(0),
    ...change,
  };
}

export function session(id: string, change: Partial<Session> = {}): Session {
  return {
    id,
    workspaceId: "ws",
    kind: "root",
    provider: "demo",
    title: id,
    cwd: "/home/you/shop",
    handles: {},
    pendingInteractionCount: 0,
    activeChildCount: 0,
    attention: "none",
    capabilities: {
      cancel: true,
      childCancel: true,
      guide: true,
      guideWhileChildrenRun: true,
      confirmsCancel: true,
      confirmsChildCancel: true,
      resume: true,
    },
    usage: noUsage,
    usageWithChildren: noUsage,
    createdAt: at(0),
    updatedAt: at(0),
    ...change,
  };
}

export function child(id: string, parent: string, change: Partial<Session> = {}): Session {
  return session(id, {
    kind: "child",
    parentAgentSessionId: parent,
    parentTurnId: "T",
    rootAgentSessionId: "R",
    rootTurnId: "T",
    ...change,
  });
}

export function message(id: string, sessionId: string, seq: number, change: Partial<Message> = {}): Message {
  return {
    id,
    agentSessionId: sessionId,
    turnId: "T",
    seq,
    role: "assistant",
    kind: "text",
    content: "",
    status: "completed",
    createdAt: at(seq),
    updatedAt: at(seq),
    ...change,
  };
}

export function interaction(requestId: string, sessionId: string, turnId: string, change: Partial<Interaction> = {}): Interaction {
  return {
    agentSessionId: sessionId,
    turnId,
    requestId,
    kind: "approval",
    title: "Run this command?",
    detail: { command: "go test ./..." },
    options: [
      { id: "yes", label: "Run it", role: "allow" },
      { id: "no", label: "Do not run it", role: "deny" },
    ],
    status: "pending",
    owner: "exact",
    createdAt: at(5),
    updatedAt: at(5),
    ...change,
  };
}

export function operation(id: string, sessionId: string, turnId: string, change: Partial<Operation> = {}): Operation {
  return {
    id,
    agentSessionId: sessionId,
    turnId,
    kind: "cancel",
    status: "running",
    attempts: 1,
    targets: [{ agentSessionId: sessionId, turnId, state: "requested" }],
    createdAt: at(10),
    updatedAt: at(10),
    ...change,
  };
}

export type Kind = LogEvent["kind"];

/** A log under construction: numbers events one after the other. */
export class Log {
  readonly events: LogEvent[] = [];
  constructor(private next = 1) {}

  add(kind: Kind, data: { id?: string; agentSessionId?: string }): LogEvent {
    const agentSessionId = data.agentSessionId ?? data.id ?? "";
    const event = { type: "event", seq: this.next++, time: at(this.next), kind, agentSessionId, data } as LogEvent;
    this.events.push(event);
    return event;
  }
}

/** Entities with the tree of root R open. */
export function openTree(...events: LogEvent[]): Entities {
  const e = new Entities();
  e.trees.add("R");
  e.whole.add("R");
  for (const event of events) applyEvent(e, event);
  return e;
}

/** Everything two pages would have to agree on, in a form that compares. */
export function picture(e: Entities): unknown {
  const rows = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return {
    seq: e.seq,
    sessions: rows(e.sessions).map(([id, s]) => [id, { ...s, activeTurn: undefined, latestTurn: undefined }]),
    turns: rows(e.turns),
    latest: rows(e.latest),
    messages: rows(e.messages),
    threads: rows(e.threads).map(([id, t]) => [id, t.ids]),
    interactions: rows(e.interactions),
    operations: rows(e.operations),
    processes: rows(e.processes),
  };
}
