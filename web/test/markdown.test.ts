// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { renderMarkdown, splitBlocks } from "../src/lib/markdown";

const html = (text: string) => renderMarkdown(text).trim();

describe("markdown", () => {
  // The sanitiser drops the outermost element in this DOM; the browser tests see it whole.
  it("renders what agents write", () => {
    expect(html("**a** `b`")).toContain("<strong>a</strong> <code>b</code>");
    expect(html("1. x\n2. y")).toContain("<li>y</li>");
    expect(html("| a |\n|---|\n| b |")).toContain("<td>b</td>");
  });

  it.each([
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<a href="javascript:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](javascript:alert(1))",
    "<svg onload=alert(1)>",
    "<iframe src=//evil.example></iframe>",
    "`<b onmouseover=alert(1)>`",
    '[x](https://ok.example "onmouseover=alert(1)")',
    "<style>*{display:none}</style>",
  ])("does no harm: %s", (text) => {
    const box = document.createElement("div");
    box.innerHTML = html(text);
    expect(box.querySelector("script, img, svg, iframe, style")).toBeNull();
    for (const node of box.querySelectorAll("*")) {
      for (const name of node.getAttributeNames()) expect(name).not.toMatch(/^on|^style$/);
      expect(node.getAttribute("href") ?? "https:").toMatch(/^(https?:|mailto:)/);
    }
  });

  it("shows raw HTML as text, and an image as a link", () => {
    const box = document.createElement("div");
    box.innerHTML = html("a <b>bold</b> claim");
    expect(box.textContent).toBe("a <b>bold</b> claim");
    box.innerHTML = html("![logo](https://tracker.example/x.png)");
    expect(box.querySelector("a")?.getAttribute("rel")).toContain("noopener");
    expect(box.querySelector("img")).toBeNull();
  });

  it("cuts streaming text at blank lines outside fences", () => {
    expect(splitBlocks("one\n\n```go\na\n\nb\n```\n\ntwo")).toEqual(["one", "```go\na\n\nb\n```", "two"]);
    expect(splitBlocks("```\nopen\n\nstill")).toEqual(["```\nopen\n\nstill"]);
  });
});
