// "Why?": this turn over time, what holds it open, what a stop has confirmed, what was used.

import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { words } from "../data/api";
import type { Operation, Process, Session, Target, Turn } from "../data/model";
import { agentsOf, endedLate, isLive, latestTurn, liveAgentsOf, openPromptsOf, stalledSince, stateOf, stateWords, stopsUnder, tokens } from "../data/select";
import { nameOf, stopWords, unconfirmed } from "../data/why";
import { href, route } from "../lib/router";
import { clip, compact, money } from "../lib/text";
import { now, tight } from "../lib/media";
import { roughly } from "../lib/time";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Clock, For } from "../ui/time";
import { needsLink, useModel, type Model } from "./model";
import { Timeline } from "./timeline";

/** Whether the panel is shown: beside the transcript, or as a sheet where there is no room. */
export function panelOf(model: Model): Signal<boolean> {
  return tight.value ? model.panelSheet : model.panelOpen;
}

/** Shows the panel and goes into it: who asks why is led to the answer. */
export function showPanel(model: Model): void {
  panelOf(model).value = true;
  setTimeout(() => document.getElementById("panel")?.focus());
}

/** Closes the panel; who was in it is back at the button that opened it. */
export function closePanel(model: Model): void {
  const within = document.activeElement?.closest("#panel");
  panelOf(model).value = false;
  if (within) setTimeout(() => document.getElementById("why-toggle")?.focus());
}

/** The key for it. A second time, from within, it closes the panel. */
export function togglePanel(model: Model): void {
  if (!route.peek().session) return; // there is no turn here to ask about
  if (document.activeElement?.closest("#panel")) closePanel(model);
  else showPanel(model);
}

export function Panel({ rootId, onClose }: { rootId: string; onClose: () => void }) {
  const model = useModel();
  const e = model.read(`tree:${rootId}`, `gate:${rootId}`);
  const root = e.sessions.get(rootId);
  const turn = latestTurn(e, rootId);
  return (
    <aside class="panel" id="panel" tabIndex={-1} aria-label="This turn">
      <header class="panel-head">
        <h2>This turn</h2>
        <button type="button" class="quiet square" aria-label="Close the panel" onClick={onClose}>
          <Icon name="close" />
        </button>
      </header>
      {!root || !turn ? (
        <p class="soft">Nothing has run yet.</p>
      ) : (
        <>
          <Timeline rootId={rootId} turn={turn} />
          <Open root={root} turn={turn} />
          <Stops rootId={rootId} turn={turn} />
          <Processes rootId={rootId} />
          <Used root={root} turn={turn} />
          <Facts session={root} />
        </>
      )}
    </aside>
  );
}

function Open({ root, turn }: { root: Session; turn: Turn }) {
  const model = useModel();
  const e = model.read(`tree:${root.id}`, `gate:${root.id}`);
  const open = liveAgentsOf(e, root.id, turn.id);
  const gate = e.gates.get(turn.id);
  const live = isLive(turn) || open.length > 0;
  const part = turn.providerTurn;
  const own = openPromptsOf(e, root.id)[0];
  return (
    <section class="facts">
      <h3>{live ? "Why it is still open" : "How it ended"}</h3>
      <dl>
        <dt>Main agent</dt>
        <dd>
          {own ? (
            <button type="button" class="link s-ask" onClick={() => model.goTo(own)}>
              waits for you
            </button>
          ) : (
            mainPart(live, part, endedLate(e, turn))
          )}
        </dd>
        {open.map((s) => (
          <OpenAgent key={s.id} session={s} />
        ))}
        {live && (
          <>
            <dt>Continuation</dt>
            <dd class={gate?.continuation ? "" : "soft"}>
              {gate?.continuation ? <Countdown deadline={gate.continuation.deadline} /> : part?.phase === "reserved" ? "reserved" : "none reserved"}
            </dd>
          </>
        )}
        {!live && (
          <>
            <dt>Turn</dt>
            <dd class={`s-${turn.outcome}`}>{turn.outcome}</dd>
            {turn.error && (
              <>
                <dt>Reason</dt>
                <dd>{turn.error.message}</dd>
              </>
            )}
          </>
        )}
      </dl>
    </section>
  );
}

function mainPart(live: boolean, part: Turn["providerTurn"], late: boolean) {
  if (!part) return <span class="soft">{live ? "not started" : "never started"}</span>;
  if (late) return <span class="s-interrupted">{part.outcome ?? "ended"} later, after the turn had been stopped</span>;
  if (!live && part.phase !== "ended") return <span class="s-interrupted">its end was not seen</span>;
  if (part.phase === "running") return <span class="s-working">working</span>;
  if (part.phase === "reserved") return <span class="s-working">about to go on</span>;
  return (
    <span>
      {part.outcome ?? "ended"}
      {live && ", kept"}
    </span>
  );
}

function OpenAgent({ session }: { session: Session }) {
  const model = useModel();
  const e = model.tree(session.id);
  model.read(`gate:${e.rootOf(session.id)}`);
  const turn = latestTurn(e, session.id);
  const state = stateOf(e, session.id);
  const prompt = openPromptsOf(e, session.id).find((i) => i.status === "pending");
  const silent = turn && stalledSince(e, turn);
  const page = { workspace: session.workspaceId, session: e.rootOf(session.id), child: session.id };
  return (
    <>
      <dt>
        <a data-route href={href(page)}>
          {nameOf(session)}
        </a>
      </dt>
      <dd class={`s-${state}`}>
        {prompt ? (
          <button type="button" class="link s-ask" onClick={() => model.goTo(prompt)}>
            waits for you
          </button>
        ) : silent ? (
          <span class="s-stalled">
            silent for <For since={silent} />
          </span>
        ) : (
          stateWords[state]
        )}
      </dd>
    </>
  );
}

function Countdown({ deadline }: { deadline: string }) {
  const left = Date.parse(deadline) - now.value;
  return <span class="s-working num">{left > 0 ? `starts within ${roughly(left + 999)}` : "due now"}</span>;
}

function Stops({ rootId, turn }: { rootId: string; turn: Turn }) {
  const e = useModel().tree(rootId);
  const stops = stopsUnder(e, rootId, turn.id);
  return (
    <>
      {stops.map((o) => (
        <Stop key={o.id} operation={o} rootId={rootId} />
      ))}
    </>
  );
}

const targetWords: Record<Target["state"], string> = {
  requested: "asked, no word yet",
  acknowledged: "took the request",
  canceled: "stopped, confirmed",
  interrupted: "did not confirm",
  already_terminal: "had ended by itself",
};
const targetState = { requested: "submitted", acknowledged: "stopping", canceled: "canceled", interrupted: "interrupted", already_terminal: "completed" } as const;

function Stop({ operation: o, rootId }: { operation: Operation; rootId: string }) {
  const e = useModel().tree(rootId);
  const [all, setAll] = useState(false);
  const subject = e.sessions.get(o.agentSessionId);
  const whole = o.agentSessionId === rootId;
  const shown = all ? o.targets : o.targets.slice(0, 8);
  const open = o.status === "pending" || o.status === "running";
  const left = o.deadline && open ? Date.parse(o.deadline) - now.value : 0;
  return (
    <section class="facts">
      <h3>{whole ? "Stop of everything" : `Stop of “${subject ? nameOf(subject) : "an agent"}”`}</h3>
      <dl>
        <dt>Asked</dt>
        <dd>
          <Clock at={o.createdAt} seconds />
        </dd>
        <dt>{open ? "So far" : "Result"}</dt>
        <dd class={o.status === "failed" ? "s-failed" : o.status === "unconfirmed" ? "s-interrupted" : ""}>{stopWords(o)}</dd>
        {left > 0 && (
          <>
            <dt>Gives up waiting</dt>
            <dd class="num">in {roughly(left + 999)}</dd>
          </>
        )}
        {o.attempts > 1 && (
          <>
            <dt>Attempts</dt>
            <dd class="num">{o.attempts}</dd>
          </>
        )}
        {(o.targets.length > 1 || o.targets[0]?.turnId !== o.turnId ? shown : []).map((t) => {
          const session = e.sessions.get(t.agentSessionId);
          return (
            <>
              <dt class="target" key={`${t.turnId}-t`}>
                <Glyph state={targetState[t.state]} word />
                {t.agentSessionId === rootId ? "Main agent" : session ? nameOf(session) : "An agent"}
              </dt>
              <dd key={`${t.turnId}-d`} class="soft" title={t.evidence}>
                {t.agentSessionId === rootId && t.state === "interrupted" ? unconfirmed : targetWords[t.state]}
              </dd>
            </>
          );
        })}
      </dl>
      {o.targets.length > shown.length && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show all {o.targets.length}
        </button>
      )}
    </section>
  );
}

/** Commands that outlived their turns: nothing waits for them, so they are easily forgotten. */
function Processes({ rootId }: { rootId: string }) {
  const e = useModel().tree(rootId);
  const running = [...e.processes.values()].filter((p) => p.status === "running" && e.rootOf(p.agentSessionId) === rootId);
  if (running.length === 0) return null;
  return (
    <section class="facts">
      <h3>Still running</h3>
      <dl>
        {running.map((p) => (
          <Running key={`${p.agentSessionId}/${p.id}`} process={p} rootId={rootId} />
        ))}
      </dl>
    </section>
  );
}

function Running({ process: p, rootId }: { process: Process; rootId: string }) {
  const model = useModel();
  const owner = model.tree(rootId).sessions.get(p.agentSessionId);
  const lost = model.lostAt.value !== undefined;
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const end = () => {
    setBusy(true);
    setError("");
    model
      .stopProcess(p)
      .catch((cause: unknown) => setError(words(cause)))
      .finally(() => setBusy(false));
  };
  return (
    <>
      <dt class="mono" title={`${p.command}\nstarted by ${owner ? nameOf(owner) : "an agent"}`}>
        {clip(p.command, 60)}
      </dt>
      <dd>
        {p.stoppable ? (
          <button type="button" class="link" disabled={busy || lost} title={lost ? needsLink : undefined} aria-label={`Stop ${clip(p.command, 60)}`} onClick={end}>
            {busy ? "Stopping…" : "Stop"}
          </button>
        ) : (
          <span class="soft">ends with its session</span>
        )}
        {error && (
          <span class="error" role="alert">
            {error}
          </span>
        )}
      </dd>
    </>
  );
}

function Used({ root, turn }: { root: Session; turn: Turn }) {
  const e = useModel().tree(root.id);
  const whole = root.usageWithChildren;
  if (tokens(whole) === 0 && tokens(root.usage) === 0) return null;
  const agents = agentsOf(e, root.id, turn.id).length;
  return (
    <section class="facts">
      <h3>Used in this session</h3>
      <dl>
        <dt>Main agent</dt>
        <dd class="num">{compact(tokens(root.usage))} tokens</dd>
        <dt>{agents > 0 || tokens(whole) > tokens(root.usage) ? "With agents" : "In all"}</dt>
        <dd class="num">{compact(tokens(whole))} tokens</dd>
        {whole.cachedInputTokens > 0 && (
          <>
            <dt>Of these cached</dt>
            <dd class="num">{compact(whole.cachedInputTokens)}</dd>
          </>
        )}
        {whole.costMicros > 0 && (
          <>
            <dt>Cost</dt>
            <dd class="num">{money(whole.costMicros)}</dd>
          </>
        )}
      </dl>
    </section>
  );
}

function Facts({ session }: { session: Session }) {
  const model = useModel();
  const can = session.capabilities;
  const limits = [
    can.cancel ? (can.confirmsCancel ? "" : "A stop of the turn is not confirmed by it.") : "A turn cannot be stopped.",
    can.childCancel ? (can.confirmsChildCancel ? "" : "A stop of one agent is not confirmed by it.") : "One agent cannot be stopped alone.",
    can.guide ? "" : "No messages while a turn runs.",
    can.guideWhileChildrenRun ? "" : "No messages while only agents run.",
    can.resume ? "" : "It cannot go on after its process has ended.",
  ].filter(Boolean);
  return (
    <section class="facts">
      <h3>Session</h3>
      <dl>
        <dt>Provider</dt>
        <dd>{model.providerName(session.provider)}</dd>
        {session.model && (
          <>
            <dt>Model</dt>
            <dd>{session.model}</dd>
          </>
        )}
        {session.permissionMode && (
          <>
            <dt>Permissions</dt>
            <dd>{session.permissionMode}</dd>
          </>
        )}
        <dt>Directory</dt>
        <dd class="mono path">{session.cwd}</dd>
      </dl>
      {limits.length > 0 && (
        <ul class="limits soft">
          {limits.map((l) => (
            <li key={l}>{l}</li>
          ))}
        </ul>
      )}
    </section>
  );
}
