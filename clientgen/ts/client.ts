// The calls of the daemon, typed by the document. Names of paths and fields come from
// schema.gen.ts; this file adds who is calling, and errors that can be switched on.

import createFetchClient from "openapi-fetch";
import type { components, paths } from "./schema.gen";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** A refusal of the daemon: `code` is stable, `message` is for people. */
export class ProblemError extends Error {
  readonly status: number;
  readonly code: string;
  readonly problem: Problem | undefined;

  constructor(status: number, problem: Problem | undefined) {
    super(problem?.detail ?? problem?.title ?? `The daemon answered ${status}.`);
    this.name = "ProblemError";
    this.status = status;
    this.code = problem?.code ?? "unknown";
    this.problem = problem;
  }
}

export interface ClientOptions {
  /** Base address; "" for the page's own daemon. */
  baseUrl: string;
  /** Bearer token; a page has its cookie instead. */
  token?: string;
  /** How this program names itself: web, … */
  client?: string;
  fetch?: (request: Request) => Promise<Response>;
}

export function createClient(options: ClientOptions) {
  const headers: Record<string, string> = {};
  if (options.token) headers["Authorization"] = `Bearer ${options.token}`;
  if (options.client) headers["Turnkeeper-Client"] = options.client;
  return createFetchClient<paths>({
    baseUrl: options.baseUrl,
    headers,
    ...(options.fetch ? { fetch: options.fetch } : {}),
  });
}

export type Client = ReturnType<typeof createClient>;

/** The data of an answer, or a ProblemError. */
export async function unwrap<T>(
  call: Promise<{ data?: T; error?: unknown; response: Response }>,
): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) throw new ProblemError(response.status, isProblem(error) ? error : undefined);
  return data as T; // a 204 has none, and its T is undefined
}

function isProblem(v: unknown): v is Problem {
  return typeof v === "object" && v !== null && "code" in v && "status" in v;
}
