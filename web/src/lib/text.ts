// Small pure helpers over text.

const encoder = new TextEncoder();
const decoder = new TextDecoder();

// eslint-disable-next-line no-control-regex
const ansi = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Length in bytes of UTF-8, the unit of the stream's offsets. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/** The text without its first n bytes of UTF-8. */
export function dropBytes(text: string, n: number): string {
  return n <= 0 ? text : decoder.decode(encoder.encode(text).subarray(n));
}

/** Terminal output without its colour and cursor codes. */
export function plain(text: string): string {
  return text.includes("\u001b") ? text.replace(ansi, "") : text;
}

/** The last line that says something, without markup, for one-line summaries. */
export function lastLine(text: string, limit = 200): string {
  const tail = plain(text.slice(-4000)).trimEnd();
  const line = tail.slice(tail.lastIndexOf("\n") + 1);
  return clip(unmark(line), limit);
}

/** The first line that says something, without markup. */
export function firstLine(text: string, limit = 200): string {
  const head = plain(text.slice(0, 4000)).trimStart();
  const end = head.indexOf("\n");
  return clip(unmark(end < 0 ? head : head.slice(0, end)), limit);
}

/** The first line of a report that says something, without markup; a heading only where nothing else stands. */
export function gist(text: string, limit = 200): string {
  const head = plain(text.slice(0, 4000));
  const lines = (head.replace(/^\s*```[^]*?^\s*```/gm, "").trim() || head).split("\n").filter((line) => /[\p{L}\p{N}]/u.test(line));
  return clip(unmark(lines.find((l) => !heading.test(l)) ?? lines[0] ?? ""), limit);
}

/** A heading by its marks, in bold alone, or a few words that lead to what follows; nor is a row of a table a sentence. */
const heading = /^\s*(#{1,6}\s|\||(\*\*|__)[^*_]+\2:?\s*$|[^.!?]{1,40}:\s*$)/;

/** At most `limit` characters, with an ellipsis where something was left out. */
export function clip(text: string, limit: number): string {
  return text.length <= limit ? text : text.slice(0, limit - 1).trimEnd() + "…";
}

function unmark(line: string): string {
  return line
    .replace(/^\s*(?:#{1,6}|[-*+>]|\d+[.)])\s+/, "")
    .replace(/(\*\*|__|`)(.+?)\1/g, "$2")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .trim();
}

/** "1 agent", "2 agents". */
export function count(n: number, one: string, many = one + "s"): string {
  return `${n} ${n === 1 ? one : many}`;
}

/** "a", "a and b", "a, b and c". */
export function list(words: readonly string[]): string {
  if (words.length < 2) return words[0] ?? "";
  return words.slice(0, -1).join(", ") + " and " + words[words.length - 1];
}

export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** 950, 41 k, 1.2 M: three figures are enough for tokens. */
export function compact(n: number): string {
  if (n < 1000) return String(n);
  if (n < 10_000) return (n / 1000).toFixed(1).replace(/\.0$/, "") + " k";
  if (n < 999_500) return Math.round(n / 1000) + " k";
  return (n / 1_000_000).toFixed(1).replace(/\.0$/, "") + " M";
}

/** Millionths of a dollar as people write it; "" for none. */
export function money(micros: number): string {
  if (micros <= 0) return "";
  const dollars = micros / 1_000_000;
  return dollars < 0.01 ? "<$0.01" : "$" + dollars.toFixed(2);
}
