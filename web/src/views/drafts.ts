// What is being typed, by session. Kept beyond a reload: a text is never lost.

import { effect, signal, type Signal } from "@preact/signals";

const drafts = new Map<string, Signal<string>>();
const prefix = "turnkeeper.draft.";

export function draftOf(sessionId: string): Signal<string> {
  let draft = drafts.get(sessionId);
  if (draft) return draft;
  draft = signal(load(sessionId));
  drafts.set(sessionId, draft);
  const kept = draft;
  effect(() => save(sessionId, kept.value));
  return draft;
}

function load(sessionId: string): string {
  try {
    return localStorage.getItem(prefix + sessionId) ?? "";
  } catch {
    return "";
  }
}

function save(sessionId: string, text: string): void {
  try {
    if (text === "") localStorage.removeItem(prefix + sessionId);
    else localStorage.setItem(prefix + sessionId, text);
  } catch {
    // full or private: the draft lives as long as the page
  }
}
