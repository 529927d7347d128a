import { describe, expect, it } from "vitest";
import { applyDelta, applyEvent } from "../src/data/apply";
import { Entities } from "../src/data/entities";
import type { LogEvent } from "../src/data/model";
import { latestTurn, newestMessage } from "../src/data/select";
import { child, interaction, Log, message, openTree, operation, picture, session, turn } from "./fixtures";

/** A whole run: a root with two children, one of them asked, answered and settled. */
function run(): Log {
  const log = new Log();
  log.add("session.created", session("R"));
  log.add("turn.created", turn("T", "R", { phase: "submitted" }));
  log.add("message.created", message("m1", "R", 3, { role: "user", content: "go" }));
  log.add("turn.updated", turn("T", "R", { providerTurn: { id: "p", phase: "running" } }));
  log.add("session.created", child("A", "R"));
  log.add("turn.created", turn("tA", "A", { rootTurnId: "T", trigger: "delegation" }));
  log.add("session.created", child("B", "R"));
  log.add("turn.created", turn("tB", "B", { rootTurnId: "T", trigger: "delegation" }));
  log.add("message.created", message("m2", "A", 9, { status: "streaming", content: "Loo" }));
  log.add("interaction.created", interaction("q", "A", "tA"));
  log.add("turn.updated", turn("tA", "A", { rootTurnId: "T", phase: "waiting" }));
  log.add("interaction.updated", interaction("q", "A", "tA", { status: "answered", answeredBy: "cli" }));
  log.add("turn.updated", turn("tA", "A", { rootTurnId: "T", phase: "running" }));
  log.add("message.updated", message("m2", "A", 9, { content: "Looks fine" }));
  log.add("operation.updated", operation("o", "B", "tB"));
  log.add("turn.updated", turn("tB", "B", { rootTurnId: "T", phase: "settled", outcome: "canceled" }));
  log.add("turn.updated", turn("tA", "A", { rootTurnId: "T", phase: "settled", outcome: "completed" }));
  log.add("turn.updated", turn("T", "R", { phase: "settled", outcome: "completed", providerTurn: { id: "p", phase: "ended", outcome: "completed" } }));
  return log;
}

describe("applying events", () => {
  it("reaches the end state in order", () => {
    const e = openTree(...run().events);
    expect(e.seq).toBe(18);
    expect(latestTurn(e, "R")?.outcome).toBe("completed");
    expect(latestTurn(e, "A")?.outcome).toBe("completed");
    expect(latestTurn(e, "B")?.outcome).toBe("canceled");
    expect(e.children.get("R")).toEqual(["A", "B"]);
    expect(e.interactions.get("A/tA/q")?.answeredBy).toBe("cli");
  });

  it("applies an event twice as once", () => {
    const { events } = run();
    const once = openTree(...events);
    const twice = openTree(...events.flatMap((event) => [event, event]));
    expect(picture(twice)).toEqual(picture(once));
  });

  it("loses and doubles nothing when a snapshot comes at any point, early or late", () => {
    const { events } = run();
    const whole = picture(openTree(...events));
    for (let cut = 0; cut <= events.length; cut++) {
      const at = openTree(...events.slice(0, cut));
      for (let arrives = 0; arrives <= events.length - cut; arrives++) {
        // The page has followed to some point; the snapshot of `cut` arrives then.
        const page = openTree(...events.slice(0, cut + arrives));
        for (const s of at.sessions.values()) {
          const latest = latestTurn(at, s.id);
          page.putSession({ ...s, ...(latest ? { latestTurn: latest } : {}) }, cut);
        }
        for (const i of at.interactions.values()) page.putInteraction(i, cut);
        for (const event of events.slice(cut + arrives)) applyEvent(page, event);
        expect(picture(page), `snapshot at ${cut} arriving at ${cut + arrives}`).toEqual(whole);
      }
    }
  });

  it("keeps two pages in agreement that followed from different points", () => {
    const { events } = run();
    const early = openTree(...events);
    const late = new Entities();
    late.trees.add("R");
    const snapshot = openTree(...events.slice(0, 8));
    for (const s of snapshot.sessions.values()) late.putSession({ ...s, latestTurn: latestTurn(snapshot, s.id)! }, 8);
    late.seq = 8;
    for (const event of events.slice(8)) applyEvent(late, event);
    // The late page never loaded the root's thread; what both hold must be equal.
    early.peeks.forEach((id, s) => s === "R" && early.messages.delete(id));
    expect(picture(late)).toEqual(picture(early));
  });

  it("counts and skips kinds it does not know, and goes on", () => {
    const e = openTree();
    applyEvent(e, { type: "event", seq: 1, time: "", kind: "weather.changed", agentSessionId: "R", data: {} } as unknown as LogEvent);
    applyEvent(e, { ...new Log(2).add("session.created", session("R")) });
    expect(e.unknown.get("weather.changed")).toBe(1);
    expect(e.seq).toBe(2);
    expect(e.sessions.has("R")).toBe(true);
  });

  it("keeps only the root of a tree that is not open", () => {
    const e = new Entities();
    for (const event of run().events) applyEvent(e, event);
    expect([...e.sessions.keys()]).toEqual(["R"]);
    expect(e.messages.size).toBe(0);
  });

  it("removes a session with everything below it, for good", () => {
    const log = run();
    log.add("session.deleted", session("R"));
    const e = openTree(...log.events);
    expect(e.sessions.size).toBe(0);
    expect(e.turns.size).toBe(0);
    expect(e.interactions.size).toBe(0);
    e.putSession(session("R"), 3); // a snapshot that was on its way
    expect(e.sessions.size).toBe(0);
  });

  it("shows the newest turn of a child that runs again", () => {
    const log = run();
    log.add("turn.created", turn("tA2", "A", { rootTurnId: "T2", trigger: "guidance" }));
    const e = openTree(...log.events);
    expect(latestTurn(e, "A")?.id).toBe("tA2");
    // A late word about the old turn does not bring it back.
    applyEvent(e, new Log(20).add("turn.updated", turn("tA", "A", { rootTurnId: "T", phase: "settled", outcome: "completed" })));
    expect(latestTurn(e, "A")?.id).toBe("tA2");
  });
});

describe("messages", () => {
  it("keeps one newest message of a session whose thread is not loaded", () => {
    const e = openTree(...run().events);
    expect(e.threads.has("A")).toBe(false);
    applyEvent(e, new Log(19).add("message.created", message("m3", "A", 19, { content: "more" })));
    expect(newestMessage(e, "A")?.id).toBe("m3");
    expect(e.messages.has("m2")).toBe(false);
  });

  it("keeps the order of seq, whatever the order of arrival", () => {
    const e = openTree(...run().events.slice(0, 2));
    e.setThread("R", { state: "loading" });
    e.putMessage(message("b", "R", 20), 20);
    e.putMessage(message("a", "R", 10), 5);
    e.putMessage(message("c", "R", 30), 30);
    expect(e.threads.get("R")?.ids).toEqual(["a", "b", "c"]);
  });

  it("does not take in a message of a page that is not loaded", () => {
    const e = openTree(...run().events.slice(0, 2));
    e.setThread("R", { state: "loading" });
    e.putMessage(message("b", "R", 20), 5);
    e.setThread("R", { state: "loaded", hasBefore: true });
    e.putMessage(message("old", "R", 3), 40);
    expect(e.threads.get("R")?.ids).toEqual(["b"]);
    expect(e.messages.has("old")).toBe(false);
  });
});

describe("deltas", () => {
  function streaming(content: string): Entities {
    const e = openTree(...run().events.slice(0, 8));
    e.setThread("A", { state: "loaded", hasBefore: false });
    e.putMessage(message("m", "A", 9, { status: "streaming", content }), 9);
    return e;
  }
  const delta = (offset: number, text: string) => ({ type: "delta" as const, agentSessionId: "A", messageId: "m", offset, text });
  const text = (e: Entities) => e.messages.get("m")?.content;

  it("appends", () => {
    const e = streaming("ab");
    expect(applyDelta(e, delta(2, "cd"))).toBe("applied");
    expect(applyDelta(e, delta(4, "e"))).toBe("applied");
    expect(text(e)).toBe("abcde");
  });

  it("drops what is here, whole or in part, counting bytes and not characters", () => {
    const e = streaming("äö"); // four bytes
    expect(applyDelta(e, delta(0, "äö"))).toBe("known");
    expect(applyDelta(e, delta(2, "öü"))).toBe("applied");
    expect(applyDelta(e, delta(6, "😀"))).toBe("applied");
    expect(applyDelta(e, delta(10, "!"))).toBe("applied");
    expect(text(e)).toBe("äöü😀!");
  });

  it("notices a gap instead of joining what does not belong together", () => {
    const e = streaming("ab");
    expect(applyDelta(e, delta(5, "f"))).toBe("gap");
    expect(text(e)).toBe("ab");
  });

  it("equals the stored text from any starting point, with any overlap", () => {
    const stored = "Prüfe Σ und 日本, then é.";
    const bytes = new TextEncoder().encode(stored);
    const starts = [...stored].reduce<number[]>((all, c) => [...all, all.at(-1)! + new TextEncoder().encode(c).length], [0]);
    for (const have of starts) {
      for (const from of starts.filter((s) => s <= have)) {
        const e = streaming(new TextDecoder().decode(bytes.subarray(0, have)));
        applyDelta(e, delta(from, new TextDecoder().decode(bytes.subarray(from))));
        expect(text(e), `${have} ${from}`).toBe(stored);
      }
    }
  });

  it("is superseded by the committed message, and does not fall back behind the stream", () => {
    const e = streaming("ab");
    applyDelta(e, delta(2, "cdef"));
    e.putMessage(message("m", "A", 9, { status: "streaming", content: "abcd" }), 12);
    expect(text(e)).toBe("abcdef");
    e.putMessage(message("m", "A", 9, { content: "abcdefg" }), 13);
    expect(applyDelta(e, delta(6, "gh"))).toBe("known");
    expect(text(e)).toBe("abcdefg");
  });

  it("asks for nothing about sessions that nobody looks at", () => {
    const e = openTree(...run().events.slice(0, 8));
    expect(applyDelta(e, { type: "delta", agentSessionId: "B", messageId: "x", offset: 9, text: "y" })).toBe("ignored");
  });
});

describe("processes", () => {
  it("are of their session, end once, and go with it", () => {
    const log = run();
    const process = { id: "p", agentSessionId: "A", turnId: "tA", command: "serve", stoppable: true, createdAt: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:00Z" };
    const running = { ...process, status: "running" as const };
    log.add("process.updated", running);
    const e = openTree(...log.events);
    expect(e.processes.get("A/p")?.status).toBe("running");
    e.putProcess({ ...process, status: "ended" }, log.events.length + 1);
    e.putProcess(running, log.events.length); // an older word
    expect(e.processes.get("A/p")?.status).toBe("ended");
    e.remove("A");
    expect(e.processes.size).toBe(0);
  });
});
