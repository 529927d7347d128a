// The stream over a WebSocket: hello, then events after a number, for ever.

import type { Delta, Frame, LogEvent } from "./model";

export type Link = "connecting" | "live" | "reconnecting" | "signed-out" | "gone" | "outdated";

export interface StreamHandlers {
  /** Where to go on: asked at every connection. */
  cursor(): { after: number; epoch: string };
  ready(epoch: string): void;
  event(event: LogEvent): void;
  delta(delta: Delta): void;
  /** The cursor is too old or of another epoch: read a snapshot, then open a new stream. */
  reset(reason: string): void;
  link(state: Link): void;
}

export interface Stream {
  close(): void;
  /** Connects again from the cursor, at once. */
  resume(): void;
}

export type OpenStream = (workspace: string, handlers: StreamHandlers) => Stream;

/** Two heartbeats and some: after this silence the line is dead, whatever the socket says. */
const silence = 35_000;
const backoff = [250, 500, 1000, 2000, 4000, 8000];
const final: Record<number, Link> = { 4401: "signed-out", 4403: "signed-out", 4404: "gone", 4409: "outdated" };

export function socketStream(base: string): OpenStream {
  return (workspace, handlers) => {
    let socket: WebSocket | undefined;
    let closed = false;
    let tries = 0;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let watchdog: ReturnType<typeof setTimeout> | undefined;

    const url = new URL(`v1/workspaces/${encodeURIComponent(workspace)}/events/stream`, base);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";

    function heard(): void {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => lost(), silence);
    }

    function lost(): void {
      drop();
      if (closed) return;
      handlers.link("reconnecting");
      const wait = backoff[Math.min(tries++, backoff.length - 1)]!;
      clearTimeout(timer);
      timer = setTimeout(connect, wait * (0.75 + Math.random() / 2));
    }

    function drop(): void {
      clearTimeout(watchdog);
      const old = socket;
      socket = undefined;
      if (!old) return;
      old.onopen = old.onmessage = old.onclose = old.onerror = null;
      old.close();
    }

    function connect(): void {
      clearTimeout(timer);
      drop();
      if (closed) return;
      const s = new WebSocket(url);
      socket = s;
      heard();
      s.onopen = () => {
        const { after, epoch } = handlers.cursor();
        s.send(JSON.stringify({ type: "hello", v: 1, after, ...(epoch ? { epoch } : {}) }));
      };
      s.onmessage = (m) => {
        heard();
        take(JSON.parse(String(m.data)) as Frame);
      };
      s.onclose = (c) => {
        const end = final[c.code];
        if (!end) return lost();
        stop();
        handlers.link(end);
      };
    }

    function take(frame: Frame): void {
      switch (frame.type) {
        case "ready":
          tries = 0;
          handlers.ready(frame.epoch);
          handlers.link("live");
          return;
        case "event":
          return handlers.event(frame);
        case "delta":
          return handlers.delta(frame);
        case "reset":
          stop();
          return handlers.reset(frame.reason);
      }
    }

    function wake(): void {
      if (!closed && socket?.readyState !== WebSocket.OPEN) connect();
    }

    function stop(): void {
      closed = true;
      clearTimeout(timer);
      drop();
      removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wake);
    }

    addEventListener("online", wake);
    document.addEventListener("visibilitychange", wake);
    handlers.link("connecting");
    connect();
    return { close: stop, resume: connect };
  };
}
