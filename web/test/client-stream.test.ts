// The generated client's stream layer (clientgen/ts): resume, reset, watchdog, back-off.

import { describe, expect, it } from "vitest";
import { silence, Stream, StreamingText, type Clock, type SocketLike, type StreamOptions, type StreamState } from "#client/stream";

class FakeSocket implements SocketLike {
  onopen: ((event: never) => unknown) | null = null;
  onmessage: ((event: never) => unknown) | null = null;
  onclose: ((event: never) => unknown) | null = null;
  onerror: ((event: never) => unknown) | null = null;
  sent: unknown[] = [];
  closed = false;

  constructor(readonly url: string) {}

  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }
  close(): void {
    this.closed = true;
  }
  opens(): void {
    this.onopen?.({} as never);
  }
  tells(...frames: unknown[]): void {
    for (const f of frames) this.onmessage?.({ data: JSON.stringify(f) } as never);
  }
  closes(code: number): void {
    this.onclose?.({ code } as never);
  }
}

/** Time that passes when told. */
class FakeClock implements Clock {
  now = 0;
  private timers: { at: number; f: () => void }[] = [];

  setTimeout(f: () => void, ms: number): unknown {
    const timer = { at: this.now + ms, f };
    this.timers.push(timer);
    return timer;
  }
  clearTimeout(timer: unknown): void {
    this.timers = this.timers.filter((t) => t !== timer);
  }
  random(): number {
    return 0.5; // no jitter
  }
  pass(ms: number): void {
    const end = this.now + ms;
    for (;;) {
      const next = this.timers.filter((t) => t.at <= end).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.now = next.at;
      this.clearTimeout(next);
      next.f();
    }
    this.now = end;
  }
}

function fixture(change: Partial<StreamOptions> = {}) {
  const clock = new FakeClock();
  const sockets: FakeSocket[] = [];
  const seen: number[] = [];
  const deltas: string[] = [];
  const states: StreamState[] = [];
  const stream = new Stream({
    baseUrl: "http://localhost:4880/base/?x#y",
    workspace: "ws 1",
    onEvent: (e) => seen.push(e.seq),
    onDelta: (d) => deltas.push(d.text),
    onState: (s) => states.push(s),
    open: (url) => {
      const s = new FakeSocket(url);
      sockets.push(s);
      return s;
    },
    clock,
    ...change,
  });
  const last = () => sockets[sockets.length - 1]!;
  return { clock, sockets, seen, deltas, states, stream, last };
}

const ready = (seq: number, epoch = "e1") => ({ type: "ready", epoch, seq, mode: "replay" });
const event = (seq: number) => ({ type: "event", seq, kind: "turn.updated", agentSessionId: "s", time: "", data: {} });
const settle = () => new Promise((done) => setTimeout(done, 0));

describe("Stream", () => {
  it("says hello from its cursor and takes each event once", () => {
    const f = fixture({ from: { seq: 5, epoch: "e1" } });
    f.stream.start();
    expect(f.last().url).toBe("ws://localhost:4880/base/v1/workspaces/ws%201/events/stream");
    f.last().opens();
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 5, epoch: "e1" }]);
    f.last().tells(ready(7), event(6), event(7), event(7), { type: "delta", text: "x", offset: 0 }, { type: "new-kind" });
    expect(f.seen).toEqual([6, 7]);
    expect(f.deltas).toEqual(["x"]);
    expect(f.stream.cursor).toEqual({ seq: 7, epoch: "e1" });
  });

  it("comes back from where it was, waiting longer each time", () => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().opens();
    f.last().tells(ready(1), event(1));
    for (const wait of [250, 500, 1000, 2000, 4000, 8000, 8000]) {
      f.last().closes(1006);
      const n = f.sockets.length;
      f.clock.pass(wait - 1);
      expect(f.sockets.length).toBe(n);
      f.clock.pass(1);
      expect(f.sockets.length).toBe(n + 1);
    }
    f.last().opens();
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 1, epoch: "e1" }]);
    f.last().tells(ready(2), event(2));
    expect(f.seen).toEqual([1, 2]);
    f.last().closes(1012); // a restart is no ending
    f.clock.pass(250); // and a connection that lived begins the waits anew
    expect(f.states[f.states.length - 1]).toEqual({ is: "connecting" });
  });

  it("gives up a line that is silent for two beats", () => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().opens();
    f.last().tells(ready(0));
    f.clock.pass(silence - 1);
    f.last().tells({ type: "heartbeat", seq: 0 });
    f.clock.pass(silence - 1);
    expect(f.sockets[0]!.closed).toBe(false);
    f.clock.pass(1);
    expect(f.sockets[0]!.closed).toBe(true);
    f.clock.pass(250);
    expect(f.sockets.length).toBe(2);
  });

  it("asks again for an event that is missing", () => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().opens();
    f.last().tells(ready(3), event(1), event(3), event(2));
    f.clock.pass(250);
    f.last().opens();
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 1, epoch: "e1" }]);
    f.last().tells(ready(3), event(2), event(3), { type: "heartbeat", seq: 4 });
    expect(f.seen).toEqual([1, 2, 3]);
    expect(f.states[f.states.length - 1]!.is).toBe("waiting"); // the heartbeat knew of a fourth
  });

  it("lets a heartbeat move the cursor of a filtered stream", () => {
    const f = fixture({ from: { seq: 0, epoch: "" }, sessions: ["root"] });
    f.stream.start();
    f.last().opens();
    f.last().tells(ready(9), event(3), { type: "heartbeat", seq: 9 });
    expect(f.stream.cursor?.seq).toBe(9);
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 0, sessions: ["root"] }]);
  });

  it("reads a snapshot at the start and after a reset, and again where that fails", async () => {
    let reads = 0;
    const f = fixture({
      snapshot: async () => {
        if (++reads === 2) throw new Error("no answer");
        return { seq: reads * 10, epoch: `e${reads}` };
      },
    });
    f.stream.start();
    await settle();
    f.last().opens();
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 10, epoch: "e1" }]);
    f.last().tells(ready(50, "e9"), { type: "reset", reason: "epoch", epoch: "e9", seq: 50 });
    expect(f.last().closed).toBe(true);
    await settle();
    f.clock.pass(250);
    await settle();
    f.last().opens();
    expect(f.last().sent).toEqual([{ type: "hello", v: 1, after: 30, epoch: "e3" }]);
    expect(reads).toBe(3);
  });

  it.each([
    [4401, "signed-out"],
    [4403, "origin"],
    [4404, "gone"],
    [4409, "outdated"],
    [1008, "refused"],
  ] as const)("does not come back after %i", (code, reason) => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().opens();
    f.last().closes(code);
    f.clock.pass(1e6);
    expect(f.sockets.length).toBe(1);
    expect(f.states[f.states.length - 1]).toEqual({ is: "ended", reason, code });
  });

  it("takes nothing after close, and resumes at once when asked to", () => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().closes(1006);
    f.stream.resume();
    expect(f.sockets.length).toBe(2);
    f.stream.resume(); // it is connecting already
    expect(f.sockets.length).toBe(2);
    f.last().opens();
    const socket = f.last();
    const message = socket.onmessage!;
    f.stream.close();
    message({ data: JSON.stringify(event(1)) } as never);
    f.clock.pass(1e6);
    expect(f.seen).toEqual([]);
    expect(f.sockets.length).toBe(2);
  });

  it("drops a line that does not speak JSON", () => {
    const f = fixture({ from: { seq: 0, epoch: "" } });
    f.stream.start();
    f.last().opens();
    f.last().onmessage?.({ data: "<html>" } as never);
    expect(f.states[f.states.length - 1]!.is).toBe("waiting");
  });
});

describe("StreamingText", () => {
  it("counts bytes, drops what it has and sees a gap", () => {
    const t = new StreamingText("hé");
    expect(t.add({ offset: 3, text: "漢" })).toBe(true); // 2 characters, 3 bytes
    expect(t.add({ offset: 0, text: "hé漢字" })).toBe(true);
    expect(t.add({ offset: 1, text: "é" })).toBe(true);
    expect(t.text).toBe("hé漢字");
    expect(t.add({ offset: 10, text: "late" })).toBe(false);
    expect(t.add({ offset: 9, text: "!" })).toBe(true);
    expect(t.text).toBe("hé漢字!");
  });

  it("equals the whole text wherever it began", () => {
    const whole = "Überprüfung 漢字 🙂 plain";
    const pieces = [...whole];
    for (let from = 0; from < pieces.length; from++) {
      const t = new StreamingText(pieces.slice(0, from).join(""));
      let offset = 0;
      for (const text of pieces) {
        expect(t.add({ offset, text })).toBe(true);
        offset += new TextEncoder().encode(text).length;
      }
      expect(t.text).toBe(whole);
    }
  });
});
