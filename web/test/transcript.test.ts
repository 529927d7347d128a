import { describe, expect, it } from "vitest";
import { blocksOf } from "../src/data/transcript";
import { activity, childrenOf } from "../src/data/select";
import { earlier, hold, later, most, spanOf } from "../src/views/window";
import { at, child, interaction, Log, message, openTree, session, turn } from "./fixtures";

function tree() {
  const log = new Log();
  log.add("session.created", session("R"));
  log.add("turn.created", turn("T", "R"));
  for (const id of ["A", "B", "C"]) {
    log.add("session.created", child(id, "R", { parentToolCallId: `call-${id}` }));
    log.add("turn.created", turn(`t${id}`, id, { rootTurnId: "T" }));
  }
  log.add("session.created", child("N", "A", { parentTurnId: "tA", parentToolCallId: "call-N" }));
  log.add("turn.created", turn("tN", "N", { rootTurnId: "T" }));
  const e = openTree(...log.events);
  e.setThread("R", { state: "loaded", hasBefore: false });
  return e;
}
const call = (id: string, seq: number, change = {}) => message(id, "R", seq, { role: "tool", kind: "tool_call", callId: `call-${id}`, ...change });
const shape = (e: ReturnType<typeof tree>, id = "R") =>
  blocksOf(e, id).map((b) => (b.kind === "delegation" ? `[${b.children.map((c) => c.id).join(" ")}]` : b.kind === "message" ? b.message.id : b.kind));

describe("the transcript", () => {
  it("lets calls that were made together share a card, and keeps children out of the root's rows", () => {
    const e = tree();
    e.putMessage(message("u", "R", 20, { role: "user" }), 20);
    e.putMessage(call("A", 21), 21);
    e.putMessage(call("B", 22, { childSessionId: "B", callId: "" }), 22);
    e.putMessage(message("m", "R", 23), 23);
    e.putMessage(call("C", 24), 24);
    expect(shape(e)).toEqual(["u", "[A B]", "m", "[C]"]);
    expect(childrenOf(e, "A").map((s) => s.id)).toEqual(["N"]);
  });

  it("shows a call as a tool until its child is known", () => {
    const e = tree();
    e.putMessage(call("other", 21, { name: "shell" }), 21);
    e.putMessage(call("A", 22), 22);
    expect(shape(e)[0]).toBe("other");
    expect(shape(e)[1]).toBe("[A]");
  });

  it("gives children without a loaded call a card at the end of the turn that made them", () => {
    const e = tree();
    e.putMessage(message("u", "R", 20), 20);
    e.putMessage(message("later", "R", 30, { turnId: "T2" }), 30);
    expect(shape(e)).toEqual(["u", "[A B C]", "later"]);
  });

  it("does not make up a card for a call that may stand on an older page", () => {
    const e = tree();
    e.setThread("R", { hasBefore: true });
    e.putMessage(message("u", "R", 20), 20);
    expect(shape(e)).toEqual(["u"]);
  });

  it("folds a notice that is said again and again, and nothing else", () => {
    const e = tree();
    const notice = (id: string, seq: number, content: string, turnId = "T") => e.putMessage(message(id, "R", seq, { role: "system", kind: "notice", content, turnId }), seq);
    notice("n1", 20, "It tries again: 1/5");
    notice("n2", 21, "It tries again: 2/5");
    notice("x", 22, "The context was compacted.");
    notice("n3", 23, "It tries again: 3/5");
    e.putMessage(message("m", "R", 24, { content: "It tries again: 4/5" }), 24);
    notice("n5", 25, "It tries again: 5/5");
    notice("n6", 26, "It tries again: 5/5", "T2");
    const blocks = blocksOf(e, "R").map((b) => (b.kind === "notices" ? b.messages.map((m) => m.id).join("+") : b.key));
    expect(blocks.slice(0, 5)).toEqual(["n1+n2", "x", "n3", "m", "n5"]);
    expect(blocks[blocks.length - 1]).toBe("n6");
  });

  it("puts answered questions among the messages, open ones not", () => {
    const e = tree();
    e.putMessage(message("u", "R", 20), 20);
    e.putMessage(message("m", "R", 60), 60);
    e.putInteraction(interaction("q1", "R", "T", { status: "answered", createdAt: at(30) }), 30);
    e.putInteraction(interaction("q2", "R", "T", { createdAt: at(31) }), 31);
    expect(shape(e).filter((s) => !s.startsWith("["))).toEqual(["u", "answered", "m"]);
  });

  it("ends a settled turn once, also when late history leads back into it", () => {
    const e = tree();
    for (const id of ["A", "B", "C"]) e.remove(id);
    e.putTurn(turn("T", "R", { phase: "settled", outcome: "completed" }), 40);
    e.putMessage(message("a", "R", 20), 20);
    e.putMessage(message("b", "R", 21, { turnId: "T2" }), 21);
    e.putMessage(message("late", "R", 22), 22);
    expect(shape(e)).toEqual(["a", "turn", "b", "late"]);
    expect(new Set(blocksOf(e, "R").map((b) => b.key)).size).toBe(4);
  });

  it("says in a lane how many agents it works with, where its latest act was to start one", () => {
    const e = tree();
    e.putMessage(message("n", "A", 30, { kind: "tool_call", title: "Scout", childSessionId: "N", status: "completed" }), 30);
    expect(activity(e, "A")).toBe("working with 1 agent of its own");
  });

  it("says in a lane how a completed child came out, from its call where nothing else is loaded", () => {
    const e = tree();
    e.putTurn(turn("tA", "A", { rootTurnId: "T", phase: "settled", outcome: "completed" }), 40);
    e.putMessage(call("A", 21, { output: "## Findings\nTwo are open. More below." }), 41);
    expect(activity(e, "A")).toBe("Two are open. More below.");
  });
});

describe("the window over a long transcript", () => {
  const keys = Array.from({ length: 10_000 }, (_, i) => `k${i}`);

  it("never shows more than its bound, all the way up and down", () => {
    let w = hold({}, keys);
    for (let i = 0; i < 500; i++) {
      w = earlier(w, keys);
      const { from, to } = spanOf(w, keys);
      expect(to - from).toBeLessThanOrEqual(most);
    }
    expect(spanOf(w, keys).from).toBe(0);
    for (let i = 0; i < 500; i++) {
      w = later(w, keys);
      const { from, to } = spanOf(w, keys);
      expect(to - from).toBeLessThanOrEqual(most);
    }
    expect(spanOf(w, keys).to).toBe(keys.length);
  });

  it("keeps what is read in place while entries come before and after", () => {
    const w = earlier(hold({}, keys), keys);
    const before = spanOf(w, keys);
    const grown = ["older1", "older2", ...keys, "newer"];
    const after = spanOf(w, grown);
    expect(grown[after.from]).toBe(keys[before.from]);
  });

  it("follows the newest entry by itself", () => {
    expect(spanOf({}, [...keys, "new"]).to).toBe(10_001);
  });
});
