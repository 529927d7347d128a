// What stands in a transcript, in order: messages, delegation cards, answered questions
// and the ends of turns. Root rows are the root's alone; children live in their lanes.

import type { Entities } from "./entities";
import type { Interaction, Message, Session, Turn } from "./model";
import { sameNotice } from "./notices";
import { childrenOf, isOpen, promptsOf } from "./select";

export type Block =
  | { kind: "message"; key: string; message: Message }
  | { kind: "notices"; key: string; messages: Message[] }
  | { kind: "delegation"; key: string; turnId: string; calls: Message[]; children: Session[] }
  | { kind: "answered"; key: string; interaction: Interaction }
  | { kind: "turn"; key: string; turn: Turn; place: "start" | "end" };

/** The blocks of one session as far as its messages are loaded. */
export function blocksOf(e: Entities, sessionId: string): Block[] {
  const thread = e.threads.get(sessionId);
  const messages = (thread?.ids ?? []).flatMap((id) => e.messages.get(id) ?? []);
  const placed = placeChildren(e, sessionId, messages, !(thread?.hasBefore ?? true));
  const answered = promptsOf(e, sessionId).filter((i) => !isOpen(i));
  const blocks: Block[] = [];
  const seen = new Set<string>(); // history that comes late may lead back into an earlier turn
  let turnId = "";
  for (const message of messages) {
    if (message.turnId !== turnId) {
      closeTurn(e, sessionId, turnId, placed, answered, blocks, seen);
      turnId = message.turnId;
      if (!seen.has(turnId)) openTurn(e, sessionId, turnId, blocks);
    }
    for (const i of takeBefore(answered, turnId, message)) blocks.push(answer(i));
    const children = placed.byMessage.get(message.id);
    if (!children) pushMessage(blocks, message);
    else joinDelegation(blocks, message, children);
  }
  closeTurn(e, sessionId, turnId, placed, answered, blocks, seen);
  return blocks;
}

interface Placed {
  byMessage: Map<string, Session[]>;
  /** Children whose call no loaded message shows, by the parent turn that created them. */
  byTurn: Map<string, Session[]>;
}

function placeChildren(e: Entities, sessionId: string, messages: readonly Message[], whole: boolean): Placed {
  const byCall = new Map<string, string>();
  const byChild = new Map<string, string>();
  for (const m of messages) {
    if (m.kind !== "tool_call") continue;
    if (m.childSessionId) byChild.set(m.childSessionId, m.id);
    if (m.callId) byCall.set(m.callId, m.id);
  }
  const oldestTurn = messages[0]?.turnId;
  const placed: Placed = { byMessage: new Map(), byTurn: new Map() };
  for (const child of childrenOf(e, sessionId)) {
    const home = byChild.get(child.id) ?? byCall.get(child.parentToolCallId ?? "");
    if (home !== undefined) push(placed.byMessage, home, child);
    // Its call may stand on a page that is not loaded: only a turn seen whole is known to lack it.
    else if (whole || child.parentTurnId !== oldestTurn) push(placed.byTurn, child.parentTurnId ?? "", child);
  }
  return placed;
}

/** A notice said again and again is one entry. */
function pushMessage(blocks: Block[], message: Message): void {
  const last = blocks[blocks.length - 1];
  if (last?.kind === "notices" && sameNotice(last.messages[0]!, message)) last.messages.push(message);
  else if (last?.kind === "message" && sameNotice(last.message, message)) blocks[blocks.length - 1] = { kind: "notices", key: last.key, messages: [last.message, message] };
  else blocks.push({ kind: "message", key: message.id, message });
}

/** Calls made one after the other share a card. */
function joinDelegation(blocks: Block[], call: Message, children: Session[]): void {
  const last = blocks[blocks.length - 1];
  if (last?.kind === "delegation" && last.turnId === call.turnId) {
    last.calls.push(call);
    last.children.push(...children);
    return;
  }
  blocks.push({ kind: "delegation", key: `d:${call.id}`, turnId: call.turnId, calls: [call], children: [...children] });
}

function openTurn(e: Entities, sessionId: string, turnId: string, blocks: Block[]): void {
  const turn = e.turns.get(turnId);
  if (turn?.trigger === "provider" && turn.agentSessionId === sessionId) {
    blocks.push({ kind: "turn", key: `s:${turnId}`, turn, place: "start" });
  }
}

function closeTurn(
  e: Entities,
  sessionId: string,
  turnId: string,
  placed: Placed,
  answered: Interaction[],
  blocks: Block[],
  seen: Set<string>,
): void {
  if (turnId === "" || seen.has(turnId)) return;
  seen.add(turnId);
  const rest = answered.filter((i) => i.turnId === turnId);
  for (const i of rest) answered.splice(answered.indexOf(i), 1);
  blocks.push(...rest.map(answer));
  const orphans = placed.byTurn.get(turnId);
  if (orphans) blocks.push({ kind: "delegation", key: `o:${turnId}`, turnId, calls: [], children: orphans });
  const turn = e.turns.get(turnId);
  if (turn?.agentSessionId === sessionId && turn.phase === "settled") {
    blocks.push({ kind: "turn", key: `e:${turnId}`, turn, place: "end" });
  }
}

function takeBefore(answered: Interaction[], turnId: string, message: Message): Interaction[] {
  const taken = answered.filter((i) => i.turnId === turnId && Date.parse(i.createdAt) <= Date.parse(message.createdAt));
  for (const i of taken) answered.splice(answered.indexOf(i), 1);
  return taken;
}

function answer(interaction: Interaction): Block {
  return { kind: "answered", key: `i:${interaction.turnId}/${interaction.requestId}`, interaction };
}

function push<T>(map: Map<string, T[]>, key: string, value: T): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}
