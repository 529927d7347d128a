// One child: its lane under the card that launched it, and everything that can be done there.

import { useEffect, useState } from "preact/hooks";
import { words } from "../data/api";
import type { Session } from "../data/model";
import type { State } from "../data/select";
import { activity, childrenOf, isLive, isOpen, latestTurn, promptsOf, stalledSince, stateOf, stateWords, stopOf, tokens, usageOf } from "../data/select";
import { nameOf } from "../data/why";
import { compact, count, money } from "../lib/text";
import { href } from "../lib/router";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Elapsed, For } from "../ui/time";
import { AnsweredLine, QuestionCard } from "./interaction";
import { needsLink, useModel } from "./model";
import { Feed } from "./transcript";

export function Lane({ id, depth }: { id: string; depth: number }) {
  const model = useModel();
  const e = model.tree(id);
  const session = e.sessions.get(id);
  const open = model.lane(id);
  if (!session) return null;
  const prompts = promptsOf(e, id);
  const pending = prompts.filter(isOpen);
  const answered = prompts.filter((i) => !isOpen(i)).at(-1);
  const state = stateOf(e, id);

  return (
    <section class={`lane s-${state}`} aria-label={`${nameOf(session)}, ${stateWords[state]}`}>
      <LaneHead session={session} state={state} />
      {pending.map((i) => (
        <QuestionCard key={i.requestId} interaction={i} />
      ))}
      {pending.length === 0 && answered && !open.value && isLive(latestTurn(e, id)) && <AnsweredLine interaction={answered} />}
      <StopTrouble session={session} />
      {open.value ? <LaneBody session={session} depth={depth} /> : <Nested session={session} depth={depth} />}
    </section>
  );
}

function LaneHead({ session, state }: { session: Session; state: State }) {
  const model = useModel();
  const e = model.tree(session.id);
  model.read(`gate:${e.rootOf(session.id)}`);
  const open = model.lane(session.id);
  const turn = latestTurn(e, session.id);
  const usage = usageOf(e, session);
  const silent = turn && isLive(turn) ? stalledSince(e, turn) : undefined;
  return (
    <div class="lane-head">
      <button type="button" class="lane-toggle" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        <Glyph state={state} />
        <span class="lane-title">
          <b>{nameOf(session)}</b>
          <small>{[session.agentType, session.model].filter((x) => x && x !== session.title).join(" · ")}</small>
        </span>
        <span class="chev">
          <Icon name="chevron" />
        </span>
      </button>
      <span class="lane-meta num">
        {tokens(usage) > 0 && (
          <span class="lane-cost" title="Tokens in and out of this agent">
            {[compact(tokens(usage)), money(usage.costMicros)].filter(Boolean).join(" · ")}
          </span>
        )}
        {turn && <Elapsed since={turn.startedAt ?? turn.createdAt} until={turn.settledAt} />}
      </span>
      <p class="lane-last">
        <span class="sr">{stateWords[state]}: </span>
        {silent ? (
          <span class="s-stalled">
            silent for <For since={silent} />
            {" · "}
          </span>
        ) : null}
        <LastLine id={session.id} />
      </p>
      <span class="lane-act">
        <OpenLink session={session} />
        <StopChild session={session} />
      </span>
    </div>
  );
}

/** The line that changes most: drawn by itself. */
function LastLine({ id }: { id: string }) {
  const model = useModel();
  const root = model.sync.value!.entities.rootOf(id);
  const e = model.read(`act:${id}`, `thread:${id}`, `tree:${root}`, `gate:${root}`);
  useEffect(() => model.sync.peek()?.peek(id), [id]);
  return <>{activity(e, id)}</>;
}

function OpenLink({ session }: { session: Session }) {
  const model = useModel();
  const route = { workspace: model.sync.value!.workspace, session: model.entities.rootOf(session.id), child: session.id };
  return (
    <a class="button quiet" data-route href={href(route)} aria-label={`Open ${nameOf(session)}`}>
      Open
    </a>
  );
}

export function StopChild({ session, label = "Stop", bare = false }: { session: Session; label?: string; bare?: boolean }) {
  const model = useModel();
  const e = model.tree(session.id);
  const [error, setError] = useState("");
  const turn = latestTurn(e, session.id);
  const root = e.sessions.get(e.rootOf(session.id));
  const can = session.capabilities.childCancel || (root?.capabilities.childCancel ?? false);
  const confirms = session.capabilities.confirmsChildCancel || (root?.capabilities.confirmsChildCancel ?? false);
  if (!isLive(turn) || !can) return null;
  const stopping = turn.phase === "settling";
  const lost = model.lostAt.value !== undefined;
  const hint = confirms ? "Stops this agent and those below it; the rest goes on" : "This provider cannot confirm a stop: the agent will show as interrupted";
  return (
    <>
      <button
        type="button"
        class={bare ? "" : "quiet"}
        disabled={stopping || lost}
        title={lost ? needsLink : hint}
        aria-label={`${stopping ? "Stopping" : label} ${nameOf(session)}`}
        onClick={() => {
          setError("");
          model.stop(session.id, turn.id).catch((cause: unknown) => setError(words(cause)));
        }}
      >
        {stopping ? "Stopping…" : label}
      </button>
      {error && (
        <span class="error small" role="alert">
          {error}
        </span>
      )}
    </>
  );
}

/** A stop that went wrong is said where it was asked for. */
function StopTrouble({ session }: { session: Session }) {
  const e = useModel().tree(session.id);
  const turn = latestTurn(e, session.id);
  const stop = turn && stopOf(e, turn.id);
  if (!stop || stop.operation.status !== "failed" || !isLive(turn)) return null;
  return (
    <p class="lane-note error" role="alert">
      The stop could not be delivered: {stop.operation.error?.message ?? "no reason was given."} It still runs; you can try again.
    </p>
  );
}

function LaneBody({ session, depth }: { session: Session; depth: number }) {
  return (
    <div class="lane-body">
      {session.prompt && <blockquote class="lane-prompt">{session.prompt}</blockquote>}
      <Feed sessionId={session.id} depth={depth + 1} label={`Transcript of ${nameOf(session)}`} />
    </div>
  );
}

/** A closed lane still shows the agents below it while one of them is open. */
function Nested({ session, depth }: { session: Session; depth: number }) {
  const model = useModel();
  const e = model.tree(session.id);
  const below = childrenOf(e, session.id);
  if (below.length === 0) return null;
  const live = below.some((s) => treeLive(e, s.id));
  if (!live) {
    return (
      <p class="lane-note faint">
        <button type="button" class="link" onClick={() => (model.lane(session.id).value = true)}>
          {count(below.length, "agent")} of its own, all ended
        </button>
      </p>
    );
  }
  return <LaneList ids={below.map((s) => s.id)} depth={depth + 1} class="nest" />;
}

function treeLive(e: ReturnType<typeof useModel>["entities"], id: string): boolean {
  return isLive(latestTurn(e, id)) || childrenOf(e, id).some((c) => treeLive(e, c.id));
}

/** More ended lanes than this are folded into one row; open ones always show. */
const manyLanes = 14;

export function LaneList({ ids, depth, class: name }: { ids: readonly string[]; depth: number; class: string }) {
  const model = useModel();
  const e = model.tree(ids[0] ?? "");
  const [all, setAll] = useState(false);
  const folded = !all && ids.length > manyLanes;
  const shown = folded ? ids.filter((id, i) => i < 6 || treeLive(e, id) || stateOf(e, id) === "failed") : ids;
  return (
    <div class={name}>
      {shown.map((id) => (
        <Lane key={id} id={id} depth={depth} />
      ))}
      {shown.length < ids.length && (
        <button type="button" class="more lanes-more" onClick={() => setAll(true)}>
          Show {ids.length - shown.length} more that have ended
        </button>
      )}
    </div>
  );
}
