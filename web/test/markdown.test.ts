// @vitest-environment happy-dom
import { describe, expect, it } from "vitest";
import { colour, spans } from "../src/lib/highlight";
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

describe("colours", () => {
  it("builds spans and text, whatever the code says", () => {
    const box = document.createElement("pre");
    box.append(spans('<span class="hljs-keyword">if</span> a &lt; b &amp;&amp; <span class="x"><span class="y">&quot;&lt;img src=x&gt;&quot;</span></span>'));
    expect(box.textContent).toBe('if a < b && "<img src=x>"');
    expect(box.querySelectorAll("span").length).toBe(3);
    expect(box.querySelector("img")).toBeNull();
  });

  it("colours a known language and leaves another alone", () => {
    const code = document.createElement("code");
    code.className = "language-go";
    code.textContent = "func main() {}";
    colour(code);
    expect(code.querySelector(".hljs-keyword")?.textContent).toBe("func");
    expect(code.textContent).toBe("func main() {}");
    const other = document.createElement("code");
    other.className = "language-klingon";
    other.textContent = "Qapla'";
    colour(other);
    expect(other.innerHTML).toBe("Qapla'");
  });
});
