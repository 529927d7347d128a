// Text of agents as HTML that can do no harm: raw HTML is shown as text, images are
// links (a remote image would tell its host that it was read), links lead to the web or
// nowhere, and a sanitiser has the last word. Each of these holds without the others.

import DOMPurify from "dompurify";
import { Marked } from "marked";

const escapes: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (c) => escapes[c]!);
}

const safe = /^(?:https?:|mailto:)/i;

/** A link to somewhere else, opened apart; an address of any other kind is left out. */
function anchor(href: string, inner: string): string {
  return safe.test(href) ? `<a href="${escape(href)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>` : inner;
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: ({ text }) => escape(text),
    link({ href, tokens }) {
      return anchor(href, this.parser.parseInline(tokens));
    },
    image: ({ href, text, title }) => anchor(href, escape(text || title || href)),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

const rules = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote",
    "ul", "ol", "li", "a", "table", "thead", "tbody", "tr", "th", "td",
  ],
  ALLOWED_ATTR: ["href", "target", "rel", "class", "start", "align"],
  ALLOWED_URI_REGEXP: safe,
  RETURN_TRUSTED_TYPE: true,
};

/** Sanitised HTML of one piece of markdown. A TrustedHTML where the browser knows it. */
export function renderMarkdown(text: string): string {
  const html = marked.parse(text, { async: false });
  return DOMPurify.sanitize(html, rules) as unknown as string;
}

/**
 * Cuts text that still streams into blocks at blank lines outside code fences, so that
 * finished blocks are parsed once and only the last one again and again.
 */
export function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  let fence = "";
  let block: string[] = [];
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && fence === "") fence = mark;
    else if (mark && mark.startsWith(fence) && line.trim() === mark) fence = "";
    if (line.trim() === "" && fence === "") {
      if (block.length > 0) blocks.push(block.join("\n"));
      block = [];
    } else {
      block.push(line);
    }
  }
  if (block.length > 0) blocks.push(block.join("\n"));
  return blocks;
}
