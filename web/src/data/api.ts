// Every call to the daemon, in one place, through its generated client. Nothing else in
// the view knows a path.

import { createClient, ProblemError, unwrap } from "#client/client";
import type { Answer, Gate, Interaction, LogEvent, Message, MessagePage, NewSession, Operation, Process, ProviderCard, Session, SessionDetail, SessionPage, Turn, TurnPage, Workspace } from "./model";
import { freshId } from "../lib/id";

export { ProblemError };

/** No answer at all: the daemon is away, or the network is. */
export class Unreachable extends Error {
  constructor() {
    super("The daemon cannot be reached.");
    this.name = "Unreachable";
  }
}

/** What to show a person of whatever went wrong. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Status of a refusal; 0 where there was no answer. */
export function statusOf(error: unknown): number {
  return error instanceof ProblemError ? error.status : 0;
}

export interface Api {
  providers(): Promise<ProviderCard[]>;
  workspaces(): Promise<Workspace[]>;
  createWorkspace(name: string, path: string): Promise<Workspace>;
  sessions(ws: string, query?: { q?: string; cursor?: string; limit?: number }): Promise<SessionPage>;
  createSession(ws: string, body: NewSession, key: string): Promise<{ session: Session; turn?: Turn; message?: Message }>;
  updateSession(ws: string, id: string, body: { title?: string; pinned?: boolean }): Promise<Session>;
  deleteSession(ws: string, id: string): Promise<void>;
  detail(ws: string, id: string): Promise<SessionDetail>;
  turns(ws: string, id: string, limit: number): Promise<TurnPage>;
  gate(ws: string, id: string, turn: string): Promise<Gate>;
  messages(ws: string, id: string, range: { before?: number; limit: number }): Promise<MessagePage>;
  message(ws: string, id: string, message: string): Promise<Message>;
  send(ws: string, id: string, clientMessageId: string, text: string): Promise<{ turn: Turn; message: Message; delivery: string; operation?: Operation }>;
  interactions(ws: string, id: string): Promise<Interaction[]>;
  processes(ws: string, id: string): Promise<Process[]>;
  /** Stops asked for in a tree, newest first, true at `seq`. */
  stops(ws: string, id: string): Promise<{ items: Operation[]; seq: number }>;
  stopProcess(ws: string, process: Process): Promise<Process>;
  answer(ws: string, i: Interaction, answer: Answer): Promise<{ interaction: Interaction; operation: Operation }>;
  cancel(ws: string, session: string, turn: string): Promise<{ operation?: Operation }>;
  events(ws: string, after: number, limit: number): Promise<{ items: LogEvent[] }>;
}

const workspaces = "/v1/workspaces" as const;
const sessions = "/v1/workspaces/{workspaceID}/agent-sessions" as const;
const session = `${sessions}/{agentSessionID}` as const;
const turn = `${session}/turns/{turnID}` as const;

/** The API over HTTP. `base` is where the daemon is, with or without a slash at its end. */
export function httpApi(base: string): Api {
  const client = createClient({ baseUrl: base.replace(/\/$/, ""), fetch: reach });
  const at = (workspaceID: string, agentSessionID: string) => ({ workspaceID, agentSessionID });
  // The same key gives the same answer: a call that is tried again is not done twice.
  const once = (key = freshId()) => ({ header: { "Idempotency-Key": key } });

  return {
    providers: async () => (await unwrap(client.GET("/v1/providers"))).items,
    workspaces: async () => (await unwrap(client.GET(workspaces))).items,
    createWorkspace: (name, path) => unwrap(client.POST(workspaces, { params: once(), body: name ? { name, path } : { path } })),
    sessions: (workspaceID, query = {}) => unwrap(client.GET(sessions, { params: { path: { workspaceID }, query } })),
    createSession: (workspaceID, body, key) => unwrap(client.POST(sessions, { params: { path: { workspaceID }, ...once(key) }, body })),
    updateSession: async (ws, id, body) => (await unwrap(client.PATCH(session, { params: { path: at(ws, id) }, body }))).session,
    deleteSession: async (ws, id) => {
      await unwrap(client.DELETE(session, { params: { path: at(ws, id) } }));
    },
    detail: (ws, id) => unwrap(client.GET(session, { params: { path: at(ws, id) } })),
    turns: (ws, id, limit) => unwrap(client.GET(`${session}/turns`, { params: { path: at(ws, id), query: { limit } } })),
    gate: (ws, id, turnID) => unwrap(client.GET(`${turn}/gate`, { params: { path: { ...at(ws, id), turnID } } })),
    messages: (ws, id, query) => unwrap(client.GET(`${session}/messages`, { params: { path: at(ws, id), query } })),
    message: (ws, id, messageID) => unwrap(client.GET(`${session}/messages/{messageID}`, { params: { path: { ...at(ws, id), messageID } } })),
    send: (ws, id, clientMessageId, text) =>
      unwrap(client.POST(`${session}/messages`, { params: { path: at(ws, id) }, body: { clientMessageId, content: [{ type: "text", text }] } })),
    interactions: async (ws, id) => (await unwrap(client.GET(`${session}/interactions`, { params: { path: at(ws, id) } }))).items,
    processes: async (ws, id) => (await unwrap(client.GET(`${session}/processes`, { params: { path: at(ws, id) } }))).items,
    stops: (ws, id) => unwrap(client.GET(`${session}/operations`, { params: { path: at(ws, id), query: { kind: "cancel" } } })),
    stopProcess: (ws, p) => unwrap(client.POST(`${session}/processes/{processID}/stop`, { params: { path: { ...at(ws, p.agentSessionId), processID: p.id } } })),
    answer: (ws, i, body) =>
      unwrap(
        client.POST(`${turn}/interactions/{requestID}/response`, {
          params: { path: { ...at(ws, i.agentSessionId), turnID: i.turnId, requestID: i.requestId }, ...once() },
          body,
        }),
      ),
    cancel: (ws, id, turnID) => unwrap(client.POST(`${turn}/cancel`, { params: { path: { ...at(ws, id), turnID }, ...once() } })),
    events: (workspaceID, after, limit) => unwrap(client.GET("/v1/workspaces/{workspaceID}/events", { params: { path: { workspaceID }, query: { after, limit } } })),
  };
}

async function reach(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch {
    throw new Unreachable();
  }
}
