// When each agent of a turn worked, waited for a person, and ended.

import type { Entities } from "../data/entities";
import type { Session, Turn } from "../data/model";
import { agentsOf, descendants, endedLate, isLive, latestTurn, promptsOf, stateOf, stateOfRoot, stateWords } from "../data/select";
import { nameOf } from "../data/why";
import { now } from "../lib/media";
import { clip } from "../lib/text";
import { stopwatch } from "../lib/time";
import { useModel } from "./model";

interface Bar {
  id: string;
  name: string;
  depth: number;
  state: string;
  from: number;
  to: number;
  waits: { from: number; to: number }[];
}

const most = 24;

export function Timeline({ rootId, turn }: { rootId: string; turn: Turn }) {
  const model = useModel();
  const e = model.read(`tree:${rootId}`);
  const agents = agentsOf(e, rootId, turn.id);
  const open = isLive(turn) || agents.some((s) => isLive(latestTurn(e, s.id)));
  const end = open ? now.value : Date.parse(turn.settledAt ?? turn.createdAt);
  const bars = rows(e, rootId, turn, agents, end);
  const start = Date.parse(turn.startedAt ?? turn.createdAt);
  const span = Math.max(end - start, 1000);
  const x = (at: number) => `${Math.max(0, Math.min(100, ((at - start) / span) * 100))}%`;
  const w = (from: number, to: number) => `${Math.max(0.8, ((Math.min(to, end) - from) / span) * 100)}%`;
  return (
    <section class="timeline" aria-label="This turn over time">
      <ol>
        {bars.slice(0, most).map((bar) => (
          <li key={bar.id}>
            <span class={bar.depth > 1 ? "tl-name soft" : "tl-name"}>
              {bar.depth > 1 && <span aria-hidden="true">{"\u00a0".repeat((bar.depth - 2) * 2)}↳ </span>}
              {clip(bar.name, 28)}
              <span class="sr">, {bar.state}, {stopwatch(bar.to - bar.from)}</span>
            </span>
            <svg class={`tl-bar s-${bar.state.replace(/ .*/, "")}`} aria-hidden="true">
              <rect x={x(bar.from)} width={w(bar.from, bar.to)} y="1" height="8" rx="2.5" />
              {bar.waits.map((wait, i) => (
                <rect key={i} class="wait" x={x(wait.from)} width={w(wait.from, wait.to)} y="1" height="8" rx="2.5" />
              ))}
            </svg>
          </li>
        ))}
      </ol>
      {bars.length > most && <p class="faint small">and {bars.length - most} more</p>}
      <p class="tl-scale faint num small">
        <span>0:00</span>
        <span>{stopwatch(end - start)}</span>
      </p>
    </section>
  );
}

function rows(e: Entities, rootId: string, turn: Turn, agents: readonly Session[], end: number): Bar[] {
  const part = turn.providerTurn;
  const start = Date.parse(turn.startedAt ?? turn.createdAt);
  const below = new Set(agents.map((s) => s.id));
  // One that was not seen to end in time was there for the whole turn; where nothing
  // outlasted it, its end is the turn's.
  const seen = part?.phase === "ended" && !endedLate(e, turn);
  const mainState = seen ? (part.outcome ?? "completed") : stateOfRoot(e, rootId);
  const alone = agents.length === 0 || !seen;
  const mainEnd = alone ? end : Math.min(end, Date.parse(part.endedAt ?? turn.settledAt ?? ""));
  const main: Bar = { id: rootId, name: "Main", depth: 0, state: mainState, from: start, to: mainEnd, waits: waits(e, rootId, turn.id, end) };
  const bars = descendants(e, rootId)
    .filter((s) => below.has(s.id))
    .map((s): Bar => {
      const own = latestTurn(e, s.id);
      const from = Date.parse(own?.startedAt ?? own?.createdAt ?? s.createdAt);
      const to = own?.settledAt ? Date.parse(own.settledAt) : end;
      const state = stateOf(e, s.id);
      return { id: s.id, name: nameOf(s), depth: depthOf(e, s), state: state === "ask" ? "working" : state in stateWords ? state : "idle", from, to, waits: waits(e, s.id, own?.id ?? "", end) };
    });
  return [main, ...bars];
}

function waits(e: Entities, sessionId: string, turnId: string, end: number): Bar["waits"] {
  return promptsOf(e, sessionId)
    .filter((i) => i.turnId === turnId)
    .map((i) => ({ from: Date.parse(i.createdAt), to: i.status === "pending" ? end : Date.parse(i.updatedAt) }));
}

function depthOf(e: Entities, session: Session): number {
  let depth = 0;
  for (let s: Session | undefined = session; s?.parentAgentSessionId; s = e.sessions.get(s.parentAgentSessionId)) depth++;
  return depth;
}
