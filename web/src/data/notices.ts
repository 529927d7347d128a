// Lines that a provider says about itself, such as that it tries again. Said over and over,
// they are one line with a count.

import type { Entities } from "./entities";
import type { Message } from "./model";

export function isNotice(m: Message): boolean {
  return m.kind === "notice";
}

/** Whether two notices say the same but for their figures and ids. */
export function sameNotice(a: Message, b: Message): boolean {
  return isNotice(a) && isNotice(b) && a.turnId === b.turnId && gauge(a.content) === gauge(b.content);
}

const figures = /\b[0-9a-f]{8}[0-9a-f-]*\b|\d+/gi;

function gauge(text: string): string {
  return text.replace(figures, "#");
}

/** What a session said last in a turn, if that is a notice, with how many times in a row. */
export function lastNotice(e: Entities, sessionId: string, turnId: string): { message: Message; times: number } | undefined {
  const thread = e.threads.get(sessionId);
  const ids = thread?.ids ?? [e.peeks.get(sessionId) ?? ""];
  const message = e.messages.get(ids[ids.length - 1] ?? "");
  if (!message || !isNotice(message) || message.turnId !== turnId) return undefined;
  let times = 1;
  for (let i = ids.length - 2; i >= 0; i--, times++) {
    const before = e.messages.get(ids[i]!);
    if (!before || !sameNotice(before, message)) break;
  }
  return { message, times };
}
