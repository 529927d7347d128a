// Which part of a long transcript is in the page. Pure, so that it can be tested: ten
// thousand entries must never mean ten thousand elements.

export interface Window {
  /** Key of the first entry shown; undefined: as many as fit, counted from the end. */
  start?: string;
  /** Key of the last entry shown; undefined: the newest, also those to come. */
  end?: string;
}

/** Shown while the reader follows the newest entry. */
export const followed = 80;
/** Never more than this in the page. */
export const most = 160;
const step = 50;

export interface Span {
  from: number;
  to: number;
}

export function spanOf(w: Window, keys: readonly string[]): Span {
  const last = w.end === undefined ? -1 : keys.indexOf(w.end);
  const to = last < 0 ? keys.length : last + 1;
  const first = w.start === undefined ? -1 : keys.indexOf(w.start);
  const from = first < 0 ? Math.max(0, to - followed) : Math.min(first, to);
  return { from: Math.max(from, w.end === undefined ? to - most * 2 : 0, 0), to };
}

/** The reader has reached the top of what is shown. The same window: there is nothing older at hand. */
export function earlier(w: Window, keys: readonly string[]): Window {
  const { from, to } = spanOf(w, keys);
  if (from === 0) return hold(w, keys);
  const start = Math.max(0, from - step);
  const end = Math.min(to, start + most);
  return make(keys, start, end);
}

/** The reader has reached the bottom of what is shown. */
export function later(w: Window, keys: readonly string[]): Window {
  const { from, to } = spanOf(w, keys);
  if (to >= keys.length) return w;
  const end = Math.min(keys.length, to + step);
  return make(keys, Math.max(from, end - most), end);
}

/** The reader left the newest entry: what is shown stays, whatever comes. */
export function hold(w: Window, keys: readonly string[]): Window {
  if (w.start !== undefined || keys.length === 0) return w;
  return make(keys, spanOf(w, keys).from, spanOf(w, keys).to);
}

function make(keys: readonly string[], start: number, end: number): Window {
  const w: Window = {};
  if (keys[start] !== undefined) w.start = keys[start];
  if (end < keys.length && keys[end - 1] !== undefined) w.end = keys[end - 1];
  return w;
}
