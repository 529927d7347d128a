// The line above the composer. It says what `whyOpen` says, and nothing of its own.

import { useState } from "preact/hooks";
import { words } from "../data/api";
import { isLive, latestTurn, pendingPrompts } from "../data/select";
import { whyOpen } from "../data/why";
import { now } from "../lib/media";
import { Glyph } from "../ui/glyph";
import { Clock } from "../ui/time";
import { needsLink, useModel } from "./model";
import { closePanel, panelOf, showPanel } from "./panel";

export function WhyLine({ rootId }: { rootId: string }) {
  const model = useModel();
  const e = model.read(`tree:${rootId}`, `gate:${rootId}`, `act:${rootId}`, ...[...activeKeys(model, rootId)]);
  const turn = latestTurn(e, rootId);
  const [error, setError] = useState("");
  if (!turn) return null;
  const why = whyOpen(e, rootId, now.value);
  const open = isLive(turn);
  const question = pendingPrompts(e).find((i) => e.rootOf(i.agentSessionId) === rootId);
  const session = e.sessions.get(rootId);
  const shown = panelOf(model).value;
  const lostAt = model.lostAt.value;
  const stopping = turn.phase === "settling";

  const stop = () => {
    setError("");
    model.stop(rootId, turn.id).catch((cause: unknown) => setError(words(cause)));
  };

  return (
    <div class="whyline">
      <Glyph state={why.state} word />
      <p class="why-text" id="why">
        {lostAt !== undefined && (
          <b>
            Connection lost; as of <Clock at={new Date(lostAt).toISOString()} seconds />:{" "}
          </b>
        )}
        {lostAt === undefined ? <b>{why.head}</b> : why.head} {why.tail && <span class="soft">{why.tail}</span>}
        {error && (
          <span class="error" role="alert">
            {" "}
            The stop could not be asked for: {error}
          </span>
        )}
      </p>
      <span class="why-act">
        {question && (
          <button type="button" class="ask-button" onClick={() => model.goTo(question)}>
            Answer
          </button>
        )}
        <button type="button" class="quiet toggle" id="why-toggle" aria-expanded={shown} onClick={() => (shown ? closePanel(model) : showPanel(model))}>
          {open ? (shown ? "Hide why" : "Why?") : shown ? "Hide details" : "Details"}
        </button>
        {open && session?.capabilities.cancel !== false && (
          <button
            type="button"
            disabled={(stopping && error === "") || lostAt !== undefined}
            onClick={stop}
            title={lostAt === undefined ? "Stops the main agent and every agent below it" : needsLink}
          >
            {stopping ? "Stopping…" : "Stop all"}
          </button>
        )}
      </span>
    </div>
  );
}

/** Newest messages of open agents: what they do is part of the line. */
function* activeKeys(model: ReturnType<typeof useModel>, rootId: string): Generator<string> {
  const e = model.entities;
  for (const s of e.sessions.values()) if (e.rootOf(s.id) === rootId && isLive(latestTurn(e, s.id))) yield `act:${s.id}`;
}
