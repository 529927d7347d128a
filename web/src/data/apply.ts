import type { Entities } from "./entities";
import type { Delta, LogEvent, Message } from "./model";
import { byteLength, dropBytes } from "../lib/text";

/**
 * Applies one committed event. Data is the whole entity, so nothing is merged by
 * field. A kind this view does not know is counted and skipped: its number still
 * counts, or the stream would never get past it.
 */
export function applyEvent(e: Entities, event: LogEvent): void {
  if (event.seq <= e.seq) return; // said before
  e.seq = event.seq;
  e.touch("seq");
  switch (event.kind) {
    case "session.created":
    case "session.updated":
      e.putSession(event.data, event.seq);
      return;
    case "session.deleted":
      e.remove(event.agentSessionId);
      return;
    case "turn.created":
      e.putTurn(event.data, event.seq);
      e.setLatest(event.data.agentSessionId, event.data.id, event.seq);
      return;
    case "turn.updated":
      e.putTurn(event.data, event.seq);
      return;
    case "message.created":
    case "message.updated":
      e.putMessage(event.data, event.seq);
      return;
    case "interaction.created":
    case "interaction.updated":
      e.putInteraction(event.data, event.seq);
      return;
    case "operation.updated":
      e.putOperation(event.data, event.seq);
      return;
    case "process.updated":
      e.putProcess(event.data, event.seq);
      return;
    default:
      skip(e, event);
  }
}

function skip(e: Entities, event: never): void {
  const { kind } = event as { kind: string };
  e.unknown.set(kind, (e.unknown.get(kind) ?? 0) + 1);
}

/** What became of a delta. `gap`: text before it is missing; read the message again. */
export type DeltaVerdict = "applied" | "known" | "gap" | "ignored";

/**
 * Adds streaming text. Offset says where it belongs in bytes of UTF-8, so text that
 * is here already is dropped and missing text is noticed.
 */
export function applyDelta(e: Entities, delta: Delta): DeltaVerdict {
  const message = e.messages.get(delta.messageId);
  if (!message) return e.threads.has(delta.agentSessionId) ? "gap" : "ignored";
  if (message.status !== "streaming") return "known"; // the committed text superseded it
  const have = lengths.get(message) ?? byteLength(message.content);
  if (delta.offset > have) return "gap";
  const text = dropBytes(delta.text, have - delta.offset);
  if (text === "") return "known";
  const grown = e.setStreamed(message, message.content + text);
  lengths.set(grown, have + byteLength(text));
  return "applied";
}

/** Lengths of messages that grow, so that a long one is not measured anew for each delta. */
const lengths = new WeakMap<Message, number>();
