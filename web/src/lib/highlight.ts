// Colours for code, loaded when the first finished block of a known language is shown.

import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import go from "highlight.js/lib/languages/go";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";

const languages = { bash, css, diff, go, javascript, json, python, rust, sql, typescript, xml, yaml };
for (const [name, language] of Object.entries(languages)) hljs.registerLanguage(name, language);
hljs.registerAliases(["console", "shell", "shellsession"], { languageName: "bash" });

/** Above this a block stays plain: colouring it would hold up the page. */
const longest = 20_000;

/** Colours one code element in place. */
export function colour(code: HTMLElement): void {
  const name = /\blanguage-([\w+-]+)/.exec(code.className)?.[1] ?? "";
  const text = code.textContent ?? "";
  if (!hljs.getLanguage(name) || text.length > longest) return;
  const { value } = hljs.highlight(text, { language: name, ignoreIllegals: true });
  code.replaceChildren(spans(value));
}

/** Builds the nodes by hand: whatever the text is, nothing but spans and text comes of it. */
export function spans(markup: string): DocumentFragment {
  const root = document.createDocumentFragment();
  let at: Node = root;
  for (const part of markup.split(/(<span class="[^"<>]*">|<\/span>)/)) {
    const open = /^<span class="([^"]*)">$/.exec(part);
    if (open) {
      const span = document.createElement("span");
      span.className = open[1]!;
      at = at.appendChild(span);
    } else if (part === "</span>") at = at.parentNode ?? root;
    else if (part !== "") at.appendChild(document.createTextNode(unescape(part)));
  }
  return root;
}

const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

function unescape(text: string): string {
  return text.replace(/&(?:amp|lt|gt|quot|#x27);/g, (e) => entities[e]!);
}
