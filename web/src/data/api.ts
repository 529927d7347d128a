// Every call to the daemon, in one place. Nothing else in the view knows a path.

import type {
  Answer,
  Gate,
  Interaction,
  LogEvent,
  Message,
  MessagePage,
  NewSession,
  Operation,
  ProviderCard,
  Session,
  SessionDetail,
  SessionPage,
  Turn,
  TurnPage,
  Workspace,
} from "./model";
import { freshId } from "../lib/id";

/** A refusal of the daemon, or no daemon at all (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

export interface Api {
  providers(): Promise<ProviderCard[]>;
  workspaces(): Promise<Workspace[]>;
  createWorkspace(name: string, path: string): Promise<Workspace>;
  renameWorkspace(id: string, name: string): Promise<Workspace>;
  sessions(ws: string, query?: { q?: string; attention?: string; cursor?: string; limit?: number }): Promise<SessionPage>;
  createSession(ws: string, body: NewSession, key: string): Promise<{ session: Session; turn?: Turn }>;
  updateSession(ws: string, id: string, body: { title?: string; pinned?: boolean }): Promise<Session>;
  deleteSession(ws: string, id: string): Promise<void>;
  detail(ws: string, id: string): Promise<SessionDetail>;
  turns(ws: string, id: string, limit: number): Promise<TurnPage>;
  gate(ws: string, id: string, turn: string): Promise<Gate>;
  messages(ws: string, id: string, range: { before?: number; after?: number; limit: number }): Promise<MessagePage>;
  message(ws: string, id: string, message: string): Promise<Message>;
  send(ws: string, id: string, clientMessageId: string, text: string): Promise<{ turn: Turn; message: Message; delivery: string }>;
  interactions(ws: string, id: string): Promise<Interaction[]>;
  answer(ws: string, i: Interaction, answer: Answer): Promise<{ interaction: Interaction; operation: Operation }>;
  cancel(ws: string, session: string, turn: string): Promise<{ operation?: Operation }>;
  events(ws: string, after: number, limit: number): Promise<{ items: LogEvent[] }>;
}

interface Problem {
  code?: string;
  title?: string;
  detail?: string;
}

type Query = Record<string, string | number | undefined>;

/** The API over HTTP. `base` is the daemon's root, with a slash at its end. */
export function httpApi(base: string, fetcher: typeof fetch = (...args) => fetch(...args)): Api {
  async function call<T>(method: string, path: string, options: { query?: Query; body?: unknown; key?: string } = {}): Promise<T> {
    const url = new URL(path, base);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined && value !== "") url.searchParams.set(name, String(value));
    }
    const headers: Record<string, string> = { "X-Turnkeeper-Client": "web" };
    if (options.body !== undefined) headers["Content-Type"] = "application/json";
    if (method !== "GET") headers["Idempotency-Key"] = options.key ?? freshId();
    let response: Response;
    try {
      const init: RequestInit = { method, headers, credentials: "same-origin" };
      if (options.body !== undefined) init.body = JSON.stringify(options.body);
      response = await fetcher(url, init);
    } catch {
      throw new ApiError(0, "unreachable", "The daemon cannot be reached.");
    }
    if (!response.ok) throw await refusal(response);
    return response.status === 204 ? (undefined as T) : ((await response.json()) as T);
  }
  const at = (...parts: string[]) => ["v1", "workspaces", ...parts.map(encodeURIComponent)].join("/");
  const session = (ws: string, id: string, ...rest: string[]) => at(ws, "agent-sessions", id, ...rest);

  return {
    providers: async () => (await call<{ items: ProviderCard[] }>("GET", "v1/providers")).items,
    workspaces: async () => (await call<{ items: Workspace[] }>("GET", at())).items,
    createWorkspace: (name, path) => call("POST", at(), { body: name ? { name, path } : { path } }),
    renameWorkspace: (id, name) => call("PATCH", at(id), { body: { name } }),
    sessions: (ws, query) => call("GET", at(ws, "agent-sessions"), { query }),
    createSession: (ws, body, key) => call("POST", at(ws, "agent-sessions"), { body, key }),
    updateSession: async (ws, id, body) => (await call<{ session: Session }>("PATCH", session(ws, id), { body })).session,
    deleteSession: (ws, id) => call("DELETE", session(ws, id)),
    detail: (ws, id) => call("GET", session(ws, id)),
    turns: (ws, id, limit) => call("GET", session(ws, id, "turns"), { query: { limit } }),
    gate: (ws, id, turn) => call("GET", session(ws, id, "turns", turn, "gate")),
    messages: (ws, id, range) => call("GET", session(ws, id, "messages"), { query: { ...range } }),
    message: (ws, id, message) => call("GET", session(ws, id, "messages", message)),
    send: (ws, id, clientMessageId, text) =>
      call("POST", session(ws, id, "messages"), {
        key: clientMessageId,
        body: { clientMessageId, content: [{ type: "text", text }] },
      }),
    interactions: async (ws, id) => (await call<{ items: Interaction[] }>("GET", session(ws, id, "interactions"))).items,
    answer: (ws, i, answer) =>
      call("POST", session(ws, i.agentSessionId, "turns", i.turnId, "interactions", i.requestId, "response"), { body: answer }),
    cancel: (ws, id, turn) => call("POST", session(ws, id, "turns", turn, "cancel")),
    events: (ws, after, limit) => call("GET", at(ws, "events"), { query: { after, limit } }),
  };
}

async function refusal(response: Response): Promise<ApiError> {
  let problem: Problem = {};
  try {
    problem = (await response.json()) as Problem;
  } catch {
    // not the daemon's own answer: a proxy in between
  }
  const message = problem.detail || problem.title || `The daemon answered ${response.status}.`;
  return new ApiError(response.status, problem.code ?? "unknown", message);
}
