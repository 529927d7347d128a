import { describe, expect, it } from "vitest";
import { applyEvent } from "../src/data/apply";
import type { Entities } from "../src/data/entities";
import type { Interaction, Turn } from "../src/data/model";
import { grouped, stateOf, stateOfRoot } from "../src/data/select";
import { whyOpen } from "../src/data/why";
import { clock } from "../src/lib/time";
import { at, child, interaction, Log, message, openTree, operation, session, t0, turn } from "./fixtures";

interface Setup {
  root?: Partial<Turn>;
  /** Children as [title, turn, parent?]. */
  agents?: [string, Partial<Turn>, string?][];
  asks?: [string, Partial<Interaction>?][];
  more?: (log: Log) => void;
}

const ended = { id: "p", phase: "ended", outcome: "completed" } as const;
const running = { id: "p", phase: "running" } as const;

function build({ root = {}, agents = [], asks = [], more }: Setup): Entities {
  const log = new Log();
  log.add("session.created", session("R"));
  log.add("turn.created", turn("T", "R", root));
  for (const [title, change, parent] of agents) {
    log.add("session.created", child(title, parent ?? "R"));
    log.add("turn.created", turn(`t${title}`, title, { rootTurnId: "T", trigger: "delegation", ...change }));
  }
  for (const [who, change] of asks) log.add("interaction.created", interaction("q", who, who === "R" ? "T" : `t${who}`, change));
  more?.(log);
  const e = openTree();
  e.setThread("R", { state: "loaded", hasBefore: false }); // as the session's page has it
  for (const event of log.events) applyEvent(e, event);
  return e;
}

const line = (e: Entities, now = t0 + 60_000) => {
  const w = whyOpen(e, "R", now);
  return `${w.state}| ${w.head} ${w.tail}`.trim();
};
const settled = (outcome: Turn["outcome"] & string): Partial<Turn> => ({ phase: "settled", outcome, settledAt: at(192) });

describe("the line that says why a turn is open", () => {
  const table: [string, Setup, string][] = [
    ["nothing sent", { root: { phase: "submitted" } }, "submitted| Sent. The main agent has not started yet."],
    ["main runs", { root: { providerTurn: running } }, "working| The main agent is working."],
    [
      "main runs a tool",
      {
        root: { providerTurn: running },
        more: (l) => l.add("message.created", message("m", "R", 3, { role: "tool", kind: "tool_call", title: "go test", status: "streaming" })),
      },
      "working| The main agent is working. It is running go test.",
    ],
    [
      "main tries the same again and again",
      {
        root: { providerTurn: running },
        more: (l) => {
          l.add("message.created", message("m", "R", 3, { role: "system", kind: "notice", content: "Something else." }));
          for (const n of [1, 2, 3]) l.add("message.created", message(`n${n}`, "R", 3 + n, { role: "system", kind: "notice", content: `It tries again: ${n}/5, request 0a1b2c3d-${n}f` }));
        },
      },
      `working| The main agent is working. Its last notice: “It tries again: 3/5, request 0a1b2c3d-3f”, 3 times, last at ${clock(at(6), true)}.`,
    ],
    [
      "main has said a notice of an earlier turn",
      {
        root: { providerTurn: running },
        more: (l) => l.add("message.created", message("m", "R", 3, { turnId: "T0", role: "system", kind: "notice", content: "It tries again." })),
      },
      "working| The main agent is working.",
    ],
    [
      "an agent says a notice",
      {
        root: { phase: "waiting", providerTurn: ended },
        agents: [["Tests", {}], ["Style", {}]],
        more: (l) => l.add("message.created", message("m", "Tests", 3, { turnId: "tTests", role: "system", kind: "notice", content: "It tries again." })),
      },
      "waiting| Waiting for 2 agents. Tests says “It tries again.”; Style is working.",
    ],
    [
      "main asks",
      { root: { phase: "waiting", providerTurn: running }, asks: [["R", { title: "Which branch?" }]] },
      "ask| The main agent needs your answer. Which branch?",
    ],
    [
      "main's answer under way",
      { root: { phase: "waiting", providerTurn: running }, asks: [["R", { title: "Which branch?", status: "answering" }]] },
      "working| Your answer is on its way. Which branch?",
    ],
    [
      "main and agents",
      { root: { providerTurn: running }, agents: [["API", {}], ["DB", settled("completed")]] },
      "working| The main agent and 1 of 2 agents are working. API is working.",
    ],
    [
      "main done, two of three open, one asks",
      {
        root: { phase: "waiting", providerTurn: ended },
        agents: [["API", settled("completed")], ["Database", { phase: "waiting" }], ["Front end", {}]],
        asks: [["Database"]],
        more: (l) => l.add("message.created", message("m", "Front end", 10, { role: "tool", kind: "tool_call", title: "npm test", status: "streaming" })),
      },
      "ask| Waiting for 2 of 3 agents. Database needs your answer; Front end is running npm test.",
    ],
    [
      "nested agents count",
      {
        root: { phase: "waiting", providerTurn: ended },
        agents: [["Lead", { phase: "waiting" }], ["Scout", {}, "Lead"]],
      },
      "waiting| Waiting for 2 agents. Scout is working; Lead waits for its own agents.",
    ],
    [
      "not started and stopping",
      { root: { phase: "waiting", providerTurn: ended }, agents: [["A", { phase: "submitted" }], ["B", { phase: "settling" }]] },
      "waiting| Waiting for 2 agents. B is being stopped; A has not started yet.",
    ],
    [
      "many agents",
      { root: { phase: "waiting", providerTurn: ended }, agents: ["A", "B", "C", "D", "E", "F"].map((n) => [n, {}]) },
      "waiting| Waiting for 6 agents. A is working; B is working; C is working; 3 more are open.",
    ],
    [
      "main failed, agents go on",
      { root: { phase: "waiting", providerTurn: { id: "p", phase: "ended", outcome: "failed" } }, agents: [["A", {}]] },
      "waiting| Waiting for 1 agent. A is working.",
    ],
    [
      "continuation reserved",
      { root: { phase: "running", providerTurn: { id: "p2", phase: "reserved" } }, agents: [["A", settled("completed")]] },
      "waiting| All agents have ended. The main agent is expected to sum up.",
    ],
    [
      "stop of everything",
      {
        root: { phase: "settling", providerTurn: running },
        agents: [["A", { phase: "settling" }]],
        more: (l) =>
          l.add(
            "operation.updated",
            operation("o", "R", "T", {
              deadline: at(69),
              targets: [
                { agentSessionId: "R", turnId: "T", state: "canceled" },
                { agentSessionId: "A", turnId: "tA", state: "requested" },
              ],
            }),
          ),
      },
      "stopping| Stopping. 1 of 2 have answered; in 9 s at the latest the turn ends with what is known then.",
    ],
    [
      "stop that could not be delivered",
      {
        root: { phase: "settling", providerTurn: running },
        more: (l) => l.add("operation.updated", operation("o", "R", "T", { status: "failed", error: { code: "timeout", message: "No answer." } })),
      },
      "failed| The stop failed; the turn is still open. No answer.",
    ],
    ["stop nobody knows the targets of", { root: { phase: "settling" }, agents: [["A", { phase: "settling" }]] }, "stopping| Stopping. A is being stopped."],
    ["completed", { root: settled("completed") }, "completed| Completed after 3:12."],
    [
      "completed with agents",
      { root: settled("completed"), agents: [["A", settled("completed")], ["B", settled("completed")]] },
      "completed| Completed after 3:12. With 2 agents.",
    ],
    [
      "completed though an agent failed",
      { root: settled("completed"), agents: [["A", settled("failed")], ["B", settled("completed")]] },
      "completed| Completed after 3:12. A failed.",
    ],
    ["failed before it began", { root: { ...settled("failed"), settledAt: at(0.4) } }, "failed| Failed at once."],
    [
      "failed",
      { root: { ...settled("failed"), error: { code: "provider_refused", message: "Out of credit." } } },
      "failed| Failed after 3:12. Out of credit.",
    ],
    [
      "canceled, one agent did not confirm",
      { root: settled("canceled"), agents: [["A", settled("canceled")], ["B", settled("interrupted")]] },
      "canceled| Canceled after 3:12. B did not confirm the stop.",
    ],
    [
      "canceled, and nobody confirmed",
      {
        root: settled("canceled"),
        agents: [["A", settled("interrupted")]],
        more: (l) =>
          l.add(
            "operation.updated",
            operation("o", "R", "T", {
              status: "unconfirmed",
              targets: [
                { agentSessionId: "R", turnId: "T", state: "interrupted" },
                { agentSessionId: "A", turnId: "tA", state: "interrupted" },
              ],
            }),
          ),
      },
      "canceled| Canceled after 3:12. The main agent and A did not confirm the stop.",
    ],
    [
      "interrupted",
      { root: { ...settled("interrupted"), error: { code: "daemon_restart", message: "The daemon was restarted." } }, agents: [["A", settled("interrupted")]] },
      "interrupted| Interrupted after 3:12. The daemon was restarted; A was interrupted.",
    ],
  ];

  it.each(table)("%s", (_, setup, want) => {
    expect(line(build(setup))).toBe(want);
  });

  it("says when a reserved continuation must have begun, and what happens if not", () => {
    const e = build({ root: { providerTurn: { id: "p2", phase: "reserved" } }, agents: [["A", settled("completed")]] });
    e.putGate({ turnId: "T", phase: "running", heldBy: "continuation", retainedOutcome: "completed", openChildren: [], continuation: { deadline: at(84) } }, "R");
    expect(line(e)).toBe(
      "waiting| All agents have ended. The main agent is expected to sum up within 24 s. If it stays silent, the turn ends as completed.",
    );
  });

  it("says since when an agent is silent", () => {
    const e = build({ root: { phase: "waiting", providerTurn: ended }, agents: [["A", {}]] });
    const openChildren = [{ agentSessionId: "A", turnId: "tA", title: "A", phase: "running" as const, since: at(0), stalledSince: at(0) }];
    e.putGate({ turnId: "T", phase: "waiting", heldBy: "children", openChildren }, "R");
    expect(line(e, t0 + 190_000)).toBe("waiting| Waiting for 1 agent. A has said nothing for 3 m.");
  });
});

describe("never done while something is open", () => {
  const ends = new Set(["completed", "failed", "canceled", "interrupted", "idle"]);
  const phases = ["submitted", "running", "waiting", "settling"] as const;
  const outcomes = ["completed", "failed", "canceled", "interrupted"] as const;

  it.each(phases)("while a child is %s, at any depth, whatever the root's provider said", (phase) => {
    for (const part of [running, ended, { id: "p", phase: "reserved" } as const, undefined]) {
      for (const parent of ["R", "A"]) {
        const root: Partial<Turn> = part ? { phase: "waiting", providerTurn: part } : { phase: "waiting" };
        const e = build({ root, agents: [["A", settled("completed")], ["B", { phase }, parent]] });
        expect(ends.has(stateOfRoot(e, "R"))).toBe(false);
        expect(ends.has(whyOpen(e, "R", t0).state)).toBe(false);
        expect(line(e)).not.toMatch(/\b(Completed|Failed|Canceled|Interrupted) after/);
        expect(grouped(e).earlier).toEqual([]);
      }
    }
  });

  it.each(outcomes)("even if a root said %s while a child is live, which storage refuses", (outcome) => {
    const e = build({ root: settled(outcome), agents: [["A", {}]] });
    expect(ends.has(stateOfRoot(e, "R"))).toBe(false);
    expect(line(e)).toContain("Waiting for 1 agent.");
    expect(grouped(e).earlier).toEqual([]);
  });

  it("for a tree that is not loaded, by its own counter", () => {
    const e = openTree();
    e.trees.clear();
    e.whole.clear();
    e.putSession(session("R", { activeChildCount: 2, latestTurn: turn("T", "R", { phase: "waiting", providerTurn: ended }) }), 1);
    expect(stateOfRoot(e, "R")).toBe("waiting");
    expect(grouped(e).working.map((s) => s.id)).toEqual(["R"]);
    expect(line(e)).toBe("waiting| Waiting for 2 agents.");
  });

  it("in the very order in which one commit says it: the child first, then the root", () => {
    const e = build({ root: { phase: "waiting", providerTurn: ended }, agents: [["A", {}]] });
    const log = new Log(e.seq + 1);
    applyEvent(e, log.add("turn.updated", turn("tA", "A", { rootTurnId: "T", ...settled("completed") })));
    expect(ends.has(stateOfRoot(e, "R"))).toBe(false);
    applyEvent(e, log.add("turn.updated", turn("T", "R", { providerTurn: ended, ...settled("completed") })));
    expect(stateOfRoot(e, "R")).toBe("completed");
  });
});

describe("states of lanes and groups", () => {
  it("takes a child's state from its own turn alone", () => {
    const e = build({
      root: { phase: "waiting", providerTurn: ended },
      agents: [["A", { phase: "waiting" }], ["B", { phase: "waiting" }], ["C", { phase: "submitted" }], ["D", settled("interrupted")], ["N", {}, "B"]],
      asks: [["A"]],
    });
    expect(["A", "B", "C", "D", "N"].map((id) => stateOf(e, id))).toEqual(["ask", "waiting", "submitted", "interrupted", "working"]);
  });

  it("groups roots by what the person must do, and never lists a child", () => {
    const e = build({ root: { phase: "waiting", providerTurn: ended }, agents: [["A", {}]], asks: [["A"]] });
    e.putSession(session("W", { latestTurn: turn("tW", "W") }), 50);
    e.putSession(session("F", { latestTurn: turn("tF", "F", settled("failed")) }), 50);
    const groups = grouped(e);
    expect(groups.needsYou.map((s) => s.id)).toEqual(["R"]);
    expect(groups.working.map((s) => s.id)).toEqual(["W"]);
    expect(groups.earlier.map((s) => s.id)).toEqual(["F"]);
  });
});
