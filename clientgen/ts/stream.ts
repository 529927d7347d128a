// The stream of one workspace: every event after a number once and in order, and text
// that is still being written, over as many connections as that takes. It needs a
// WebSocket and a clock, both of which can be given, and nothing else of a browser.

import type { components } from "./schema.gen";

type Schemas = components["schemas"];
export type LogEvent = Schemas["Event"];
export type Delta = Schemas["StreamDelta"];
export type Frame = Schemas["StreamFrame"];

/** A place in the log. */
export interface Cursor {
  seq: number;
  epoch: string;
}

export type StreamState =
  | { is: "connecting" }
  | { is: "live" }
  | { is: "waiting"; milliseconds: number } // lost; comes back by itself
  | { is: "ended"; reason: EndReason; code: number };

/** Endings that coming back does not help against. */
export type EndReason = "closed" | "signed-out" | "origin" | "gone" | "outdated" | "refused" | "snapshot-failed";

const endings: Record<number, EndReason> = {
  1008: "refused",
  4401: "signed-out",
  4403: "origin",
  4404: "gone",
  4409: "outdated",
};

/** What is used of a WebSocket. */
export interface SocketLike {
  onopen: ((event: never) => unknown) | null;
  onmessage: ((event: never) => unknown) | null;
  onclose: ((event: never) => unknown) | null;
  onerror: ((event: never) => unknown) | null;
  send(data: string): void;
  close(): void;
}

export interface Clock {
  setTimeout(f: () => void, milliseconds: number): unknown;
  clearTimeout(timer: unknown): void;
  /** At least 0, below 1. */
  random(): number;
}

export interface StreamOptions {
  /** Base address of the daemon, http or https. */
  baseUrl: string;
  workspace: string;
  /** Only these, a root with every session below it; absent: all. */
  sessions?: string[];
  /** Where to begin; absent: at a snapshot, or where none can be read, now. */
  from?: Cursor;
  /**
   * Reads the state anew and says where it is true. Called at the start where `from` is
   * absent, and whenever the log begins anew or no longer reaches back.
   */
  snapshot?: () => Promise<Cursor>;
  onEvent(event: LogEvent): void;
  onDelta?(delta: Delta): void;
  onState?(state: StreamState): void;

  open?: (url: string) => SocketLike;
  clock?: Clock;
}

const version = 1;
/** The daemon beats every 15 s. */
export const beat = 15_000;
/** Two missed beats and some: the line is dead, whatever the socket says. */
export const silence = 2 * beat + 5_000;
const firstWait = 250;
const longestWait = 8_000;

const realClock: Clock = {
  setTimeout: (f, ms) => setTimeout(f, ms),
  clearTimeout: (t) => clearTimeout(t as ReturnType<typeof setTimeout>),
  random: () => Math.random(),
};

export class Stream {
  private at: Cursor | undefined;
  private socket: SocketLike | undefined;
  private ended = false;
  private tries = 0;
  private attempt = 0; // what an older attempt still brings is not taken
  private timer: unknown;
  private watchdog: unknown;
  private readonly clock: Clock;

  constructor(private readonly options: StreamOptions) {
    this.at = options.from && { ...options.from };
    this.clock = options.clock ?? realClock;
  }

  /** The newest number taken, and its epoch. */
  get cursor(): Cursor | undefined {
    return this.at && { ...this.at };
  }

  start(): void {
    if (!this.at && this.options.snapshot) void this.anew();
    else this.connect();
  }

  close(): void {
    this.end("closed", 1000);
  }

  /** Connects at once where it would have waited: the network is back, the page visible. */
  resume(): void {
    if (!this.ended && !this.socket && this.timer !== undefined) this.connect();
  }

  private async anew(): Promise<void> {
    const mine = this.next();
    this.state({ is: "connecting" });
    if (!this.options.snapshot) return this.end("snapshot-failed", 0);
    let at: Cursor;
    try {
      at = await this.options.snapshot();
    } catch {
      if (mine === this.attempt) this.wait(() => void this.anew());
      return;
    }
    if (mine !== this.attempt || this.ended) return;
    this.at = { ...at };
    this.connect();
  }

  private connect(): void {
    if (this.ended) return;
    const mine = this.next();
    this.state({ is: "connecting" });
    const socket = (this.options.open ?? ((url) => new WebSocket(url)))(this.url());
    this.socket = socket;
    this.heard();
    const current = (f: (event: { data?: unknown; code?: number }) => void) => (event: never) => {
      if (mine === this.attempt) f(event);
    };
    socket.onopen = current(() => this.hello(socket));
    socket.onmessage = current((m) => {
      this.heard();
      this.take(m.data);
    });
    socket.onclose = current((c) => this.lost(c.code ?? 1006));
  }

  private url(): string {
    const url = new URL(this.options.baseUrl);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    url.pathname = url.pathname.replace(/\/$/, "") + `/v1/workspaces/${encodeURIComponent(this.options.workspace)}/events/stream`;
    url.search = url.hash = "";
    return url.href;
  }

  private hello(socket: SocketLike): void {
    const hello: Schemas["StreamHello"] = { type: "hello", v: version };
    if (this.at) {
      hello.after = this.at.seq;
      if (this.at.epoch) hello.epoch = this.at.epoch;
    }
    if (this.options.sessions) hello.sessions = this.options.sessions;
    socket.send(JSON.stringify(hello));
  }

  private take(data: unknown): void {
    const frame = parse(data);
    if (!frame) return this.lost(1002);
    switch (frame.type) {
      case "ready":
        this.at = { seq: this.at?.seq ?? frame.seq, epoch: frame.epoch };
        this.tries = 0;
        return this.state({ is: "live" });
      case "event":
        return this.event(frame);
      case "delta":
        return this.options.onDelta?.(frame);
      case "heartbeat":
        return this.heartbeat(frame.seq);
      case "reset":
        return void this.anew();
      default: // a type that is newer than this client
    }
  }

  private event(event: LogEvent): void {
    const at = this.at;
    if (!at) return this.lost(1002);
    if (event.seq <= at.seq) return; // told before
    if (!this.options.sessions && event.seq !== at.seq + 1) return this.lost(1002); // one is missing: ask for it
    at.seq = event.seq;
    this.options.onEvent(event);
  }

  private heartbeat(seq: number): void {
    if (!this.at || seq <= this.at.seq) return;
    if (!this.options.sessions) return this.lost(1002); // events are missing
    this.at.seq = seq; // what lies between was not for us
  }

  private heard(): void {
    this.clock.clearTimeout(this.watchdog);
    this.watchdog = this.clock.setTimeout(() => this.lost(1006), silence);
  }

  private lost(code: number): void {
    const reason = endings[code];
    if (reason) return this.end(reason, code);
    this.next();
    this.wait(() => this.connect());
  }

  /** Waits longer each time, and never in step with other clients. */
  private wait(then: () => void): void {
    if (this.ended) return;
    const milliseconds = Math.min(firstWait * 2 ** Math.min(this.tries++, 16), longestWait) * (0.75 + this.clock.random() / 2);
    this.state({ is: "waiting", milliseconds });
    this.timer = this.clock.setTimeout(then, milliseconds);
  }

  private end(reason: EndReason, code: number): void {
    if (this.ended) return;
    this.next();
    this.ended = true;
    this.state({ is: "ended", reason, code });
  }

  /** Lets go of the attempt before, and numbers the new one. */
  private next(): number {
    this.clock.clearTimeout(this.timer);
    this.clock.clearTimeout(this.watchdog);
    this.timer = this.watchdog = undefined;
    const old = this.socket;
    this.socket = undefined;
    if (old) {
      old.onopen = old.onmessage = old.onclose = old.onerror = null;
      old.close();
    }
    return ++this.attempt;
  }

  private state(state: StreamState): void {
    this.options.onState?.(state);
  }
}

function parse(data: unknown): Frame | undefined {
  if (typeof data !== "string") return undefined;
  try {
    const frame: unknown = JSON.parse(data);
    if (typeof frame === "object" && frame !== null && "type" in frame) return frame as Frame;
  } catch {
    // not JSON: the line is not ours
  }
  return undefined;
}

const encoder = new TextEncoder();

/**
 * The text of one message as it is written. Offsets are bytes of UTF-8 from its start, so
 * it counts bytes and not characters: what is known is dropped, and a gap is seen.
 */
export class StreamingText {
  private bytes: number;

  constructor(public text = "") {
    this.bytes = encoder.encode(text).length;
  }

  /** Adds what is new. False: something before it was missed; read the message again. */
  add(delta: { offset: number; text: string }): boolean {
    if (delta.offset > this.bytes) return false;
    const encoded = encoder.encode(delta.text);
    const known = this.bytes - delta.offset;
    if (known >= encoded.length) return true;
    if (known === 0) this.text += delta.text;
    else this.text += new TextDecoder().decode(encoded.subarray(known));
    this.bytes = delta.offset + encoded.length;
    return true;
  }
}
