// The line above the composer. It says what `whyOpen` says, and nothing of its own.

import { useState } from "preact/hooks";
import { words } from "../data/api";
import { isLive, latestTurn, pendingPrompts } from "../data/select";
import { whyOpen } from "../data/why";
import { now, tight } from "../lib/media";
import { Glyph } from "../ui/glyph";
import { useModel } from "./model";

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
  const shown = tight.value ? model.panelSheet : model.panelOpen;

  const stop = () => {
    setError("");
    model.stop(rootId, turn.id).catch((cause: unknown) => setError(words(cause)));
  };

  return (
    <div class="whyline">
      <Glyph state={why.state} word />
      <p class="why-text" id="why">
        <b>{why.head}</b> {why.tail && <span class="soft">{why.tail}</span>}
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
        <button type="button" class="quiet" aria-expanded={shown.value} onClick={() => (shown.value = !shown.value)}>
          {open ? "Why?" : "Details"}
        </button>
        {open && session?.capabilities.cancel !== false && (
          <button type="button" disabled={turn.phase === "settling" && error === ""} onClick={stop} title="Stops the main agent and every agent below it">
            {turn.phase === "settling" ? "Stopping…" : "Stop all"}
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
