import { describe, expect, it } from "vitest";
import { byteLength, clip, compact, count, dropBytes, firstLine, gist, lastLine, list, money, plain } from "../src/lib/text";
import { ago, roughly, stopwatch } from "../src/lib/time";
import { formatPath, parsePath } from "../src/lib/router";

describe("text", () => {
  it("measures and cuts in bytes of UTF-8", () => {
    expect(byteLength("aä😀")).toBe(7);
    expect(dropBytes("aä😀", 3)).toBe("😀");
    expect(dropBytes("ab", 0)).toBe("ab");
  });

  it("finds the line that says something, without markup", () => {
    expect(firstLine("\n## **Two** findings\nmore")).toBe("Two findings");
    expect(lastLine("a\n- see `x.go` and [docs](https://x)\n\n")).toBe("see x.go and docs");
    expect(lastLine("\u001b[32mPASS\u001b[0m")).toBe("PASS");
    expect(plain("\u001b]8;;x\u0007link\u001b]8;;\u0007")).toBe("link");
    expect(clip("abcdef", 4)).toBe("abc…");
  });

  it("takes the first line of a report that says something, not its heading", () => {
    expect(gist("Looks fine. Two remarks follow.\nOne.")).toBe("Looks fine. Two remarks follow.");
    expect(gist("## Findings\n\n- `token.go` never expires. See below.")).toBe("token.go never expires. See below.");
    expect(gist("**Findings**\n\n1. No test of v1.2 covers it")).toBe("No test of v1.2 covers it");
    expect(gist("Findings:\n---\nNone.")).toBe("None.");
    expect(gist("# Findings\n")).toBe("Findings");
    expect(gist("```go\nx := 1\n```\nIt counts.")).toBe("It counts.");
    expect(gist("| a | b |\n|---|---|\n\nNo row is wrong.")).toBe("No row is wrong.");
    expect(gist("")).toBe("");
  });

  it("writes figures for people", () => {
    expect([950, 1000, 4321, 41_500, 999_400, 1_234_567].map(compact)).toEqual(["950", "1 k", "4.3 k", "42 k", "999 k", "1.2 M"]);
    expect([0, 5000, 190_000, 12_345_678].map(money)).toEqual(["", "<$0.01", "$0.19", "$12.35"]);
    expect([count(1, "agent"), count(2, "agent")]).toEqual(["1 agent", "2 agents"]);
    expect([list([]), list(["a"]), list(["a", "b"]), list(["a", "b", "c"])]).toEqual(["", "a", "a and b", "a, b and c"]);
  });
});

describe("time", () => {
  it("counts as a stopwatch", () => {
    expect([0, 7_900, 192_000, 3_729_000, -5].map(stopwatch)).toEqual(["0:00", "0:07", "3:12", "1:02:09", "0:00"]);
    expect([48_000, 190_000, 7_300_000, 200_000_000].map(roughly)).toEqual(["48 s", "3 m", "2 h", "2 d"]);
  });

  it("says how long ago in little space", () => {
    const now = Date.parse("2026-03-05T12:00:00Z");
    const at = (ms: number) => new Date(now - ms).toISOString();
    expect(ago(at(5000), now)).toBe("now");
    expect(ago(at(120_000), now)).toBe("2 m");
    expect(ago(at(3 * 86_400_000), now, "en")).toBe("Mon");
    expect(ago(at(40 * 86_400_000), now, "en")).toMatch(/Jan/);
    expect(ago("nonsense", now)).toBe("");
  });
});

describe("addresses", () => {
  it("survive a round trip", () => {
    for (const route of [{}, { workspace: "ws 1" }, { workspace: "w", session: "s" }, { workspace: "w", session: "s", child: "a/b" }]) {
      expect(parsePath(formatPath(route))).toEqual(route);
    }
    expect(parsePath("/elsewhere")).toEqual({});
  });
});
