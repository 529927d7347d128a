import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { latestTurn, stopOf } from "../src/data/select";
import { FakeDaemon, page, refusal, settle } from "./fake";
import { child, message, operation, picture, session, turn } from "./fixtures";

let daemon: FakeDaemon;

beforeEach(() => {
  vi.useFakeTimers();
  daemon = new FakeDaemon();
  daemon.commit("session.created", session("R"));
  daemon.commit("turn.created", turn("T", "R"));
  daemon.commit("message.created", message("m1", "R", 3, { role: "user", content: "go" }));
});
afterEach(() => void vi.useRealTimers());

async function opened() {
  const p = page(daemon);
  await p.sync.start();
  await p.sync.openTree("R");
  await p.sync.openThread("R");
  await settle(); // the socket
  return p;
}

function work(from: number): void {
  daemon.commit("session.created", child(`C${from}`, "R"));
  daemon.commit("turn.created", turn(`t${from}`, `C${from}`, { rootTurnId: "T" }));
  daemon.commit("message.created", message(`mm${from}`, "R", daemon.seq + 1, { content: `n${from}` }));
  daemon.commit("turn.updated", turn(`t${from}`, `C${from}`, { rootTurnId: "T", phase: "settled", outcome: "completed" }));
}

/** What a page that opened just now would show. */
async function fresh() {
  return picture((await opened()).sync.entities);
}

describe("following the daemon", () => {
  it("takes a snapshot, then every event after it", async () => {
    const { sync, links } = await opened();
    expect(sync.entities.seq).toBe(3);
    work(1);
    expect(latestTurn(sync.entities, "C1")?.outcome).toBe("completed");
    expect(sync.entities.threads.get("R")?.ids).toEqual(["m1", "mm1"]);
    expect(links.at(-1)).toBe("live");
    expect(picture(sync.entities)).toEqual(await fresh());
  });

  it("knows the stops of a tree that were asked for before it was opened, however long ago", async () => {
    daemon.commit("session.created", child("C", "R"));
    daemon.commit("turn.created", turn("t", "C", { rootTurnId: "T" }));
    daemon.commit("operation.updated", operation("o", "C", "t", { status: "unconfirmed", targets: [{ agentSessionId: "C", turnId: "t", state: "interrupted", evidence: "no answer" }] }));
    const { sync } = await opened();
    expect(stopOf(sync.entities, "t")?.target).toMatchObject({ state: "interrupted", evidence: "no answer" });
  });

  it("loses nothing that happens while a snapshot is on its way", async () => {
    const p = page(daemon);
    await p.sync.start();
    daemon.hold = true;
    const opening = Promise.all([p.sync.openTree("R"), p.sync.openThread("R")]);
    work(7); // all of it after the answer was made, before it arrives
    daemon.hold = false;
    daemon.release();
    await opening;
    expect(latestTurn(p.sync.entities, "C7")?.outcome).toBe("completed");
    expect(picture(p.sync.entities)).toEqual(await fresh());
  });

  it("resumes a dropped socket where it stood, again and again", async () => {
    const { sync, links } = await opened();
    for (let i = 10; i < 30; i++) {
      daemon.cut();
      work(i);
      await daemon.reconnect();
    }
    expect(links).toContain("reconnecting");
    expect(sync.link).toBe("live");
    expect(picture(sync.entities)).toEqual(await fresh());
    expect(daemon.calls.filter((c) => c.startsWith("detail")).length).toBe(2); // ours once, the fresh page's once
  });

  it("reads everything anew after a reset, without going blank, and ends equal", async () => {
    const { sync } = await opened();
    daemon.cut();
    work(5);
    daemon.oldest = daemon.seq; // what was missed is no longer kept
    daemon.hold = true;
    const before = sync.entities;
    await daemon.reconnect();
    await settle();
    expect(sync.entities).toBe(before); // still drawn while the new one is read
    expect(before.sessions.has("R")).toBe(true);
    daemon.hold = false;
    for (let i = 0; i < 12; i++) {
      daemon.release();
      await settle();
    }
    expect(sync.entities).not.toBe(before);
    expect(sync.link).toBe("live");
    daemon.oldest = 1;
    expect(picture(sync.entities)).toEqual(await fresh());
  });

  it("starts anew when the log did: numbers of another epoch mean nothing", async () => {
    const { sync } = await opened();
    daemon.cut();
    const next = new FakeDaemon();
    next.epoch = "e2";
    next.commit("session.created", session("R", { title: "restored" }));
    Object.assign(daemon, { epoch: "e2" });
    daemon.log.events.splice(0);
    Object.assign(daemon.log, { next: 1 });
    Object.assign(daemon, { state: next.state });
    daemon.log.events.push(...next.log.events);
    await daemon.reconnect();
    await settle();
    await vi.advanceTimersByTimeAsync(50);
    expect(sync.entities.epoch).toBe("e2");
    expect(sync.entities.seq).toBe(1);
    expect(sync.entities.sessions.get("R")?.title).toBe("restored");
  });

  it("asks again from its number when one was left out", async () => {
    const { sync } = await opened();
    daemon.log.add("session.updated", session("R", { title: "lost on the way" }));
    daemon.log.add("session.updated", session("R", { title: "newest" }));
    daemon.heartbeat(); // nothing was sent, and the daemon says that it was
    expect(sync.link).toBe("reconnecting");
    await daemon.reconnect();
    expect(sync.entities.seq).toBe(5);
    expect(sync.entities.sessions.get("R")?.title).toBe("newest");
  });

  it("notices a line that is dead though its socket is not", async () => {
    const { sync, links } = await opened();
    for (const s of daemon.sockets) s.sent = Infinity; // events go nowhere from here on
    work(4);
    await vi.advanceTimersByTimeAsync(34_000);
    expect(links).not.toContain("reconnecting");
    await vi.advanceTimersByTimeAsync(12_000);
    expect(links).toContain("reconnecting");
    expect(picture(sync.entities)).toEqual(await fresh());
  });

  it("keeps two pages equal that come, drop and return at different times", async () => {
    const a = await opened();
    work(1);
    const b = await opened();
    daemon.cut();
    work(2);
    await daemon.reconnect();
    work(3);
    expect(picture(a.sync.entities)).toEqual(picture(b.sync.entities));
  });

  it("tries again by itself while the daemon is away, and stops trying when it has no right to read", async () => {
    daemon.down = true;
    const p = page(daemon);
    await p.sync.start();
    expect(p.sync.listState).toBe("failed");
    expect(p.links.at(-1)).toBe("reconnecting");
    daemon.down = false;
    await vi.advanceTimersByTimeAsync(2000);
    expect(p.sync.link).toBe("live");

    const calls = daemon.calls.length;
    const q = page(daemon);
    daemon.api.sessions = () => Promise.reject(refusal(401, "unauthorized"));
    await q.sync.start();
    await vi.advanceTimersByTimeAsync(60_000);
    expect(q.sync.link).toBe("signed-out");
    expect(daemon.calls.length).toBe(calls);
  });

  it("says that a session is not there", async () => {
    const { sync } = await opened();
    await sync.openTree("nobody");
    expect(sync.treeStates.get("nobody")).toBe("missing");
  });
});

describe("streaming text", () => {
  it("reads a message again when a delta does not fit, and adds what came meanwhile", async () => {
    const { sync } = await opened();
    daemon.commit("message.created", message("s", "R", 4, { status: "streaming", content: "" }));
    daemon.delta({ agentSessionId: "R", messageId: "s", offset: 0, text: "one " });
    daemon.state.messages.set("s", message("s", "R", 4, { status: "streaming", content: "one two " }));
    daemon.hold = true;
    daemon.delta({ agentSessionId: "R", messageId: "s", offset: 8, text: "three " });
    daemon.delta({ agentSessionId: "R", messageId: "s", offset: 14, text: "four" });
    daemon.hold = false;
    daemon.release();
    await settle();
    expect(sync.entities.messages.get("s")?.content).toBe("one two three four");
  });
});

describe("transcripts", () => {
  it("loads a child's messages only when its thread is opened", async () => {
    daemon.commit("session.created", child("C", "R"));
    daemon.commit("turn.created", turn("tC", "C", { rootTurnId: "T" }));
    daemon.commit("message.created", message("c1", "C", 6, { content: "hello" }));
    const { sync } = await opened();
    expect(daemon.calls).not.toContain("messages C");
    await sync.openThread("C");
    expect(sync.entities.threads.get("C")?.ids).toEqual(["c1"]);
  });

  it("pages upward without holes", async () => {
    for (let i = 0; i < 200; i++) daemon.commit("message.created", message(`p${i}`, "R", daemon.seq + 1));
    const { sync } = await opened();
    const thread = () => sync.entities.threads.get("R")!;
    expect(thread().ids.length).toBe(80);
    expect(thread().hasBefore).toBe(true);
    await sync.openOlder("R");
    daemon.commit("message.created", message("last", "R", daemon.seq + 1));
    await sync.openOlder("R");
    expect(thread().hasBefore).toBe(false);
    expect(thread().ids).toEqual(["m1", ...Array.from({ length: 200 }, (_, i) => `p${i}`), "last"]);
  });
});
