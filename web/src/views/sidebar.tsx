// The session list, grouped by what the person must do. Children never appear in it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../data/model";
import { grouped, isLive, latestTurn, liveAgentCount, stateOfRoot } from "../data/select";
import { nameOf } from "../data/why";
import { narrow } from "../lib/media";
import { href, route } from "../lib/router";
import { count } from "../lib/text";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Ago } from "../ui/time";
import { useModel } from "./model";

export function Sidebar() {
  const model = useModel();
  const e = model.read("list", "prompts");
  const sync = model.sync.value!;
  const query = model.query.value.trim().toLowerCase();
  const found = useFound(query);
  const matches = (s: Session) => query === "" || nameOf(s).toLowerCase().includes(query) || found.has(s.id);
  const groups = grouped(e, matches);
  const none = groups.needsYou.length + groups.working.length + groups.earlier.length === 0;
  const several = new Set([...e.sessions.values()].filter((s) => s.kind === "root").map((s) => s.provider)).size > 1;
  const hidden = narrow.value && !model.sidebarOpen.value;

  return (
    <nav class={`sidebar${model.sidebarOpen.value ? " open" : ""}`} aria-label="Sessions" inert={hidden}>
      <div class="side-top">
        <div class="search">
          <Icon name="search" />
          <input
            id="search"
            type="search"
            placeholder="Search sessions"
            aria-label="Search sessions"
            value={model.query.value}
            onInput={(event) => (model.query.value = event.currentTarget.value)}
          />
          <kbd aria-hidden="true">/</kbd>
        </div>
        <button type="button" class="square" aria-label="New session" title="New session (n)" onClick={() => (model.dialog.value = "new")}>
          <Icon name="plus" />
        </button>
      </div>
      <div class="side-list">
        <Group title="Needs you" sessions={groups.needsYou} several={several} />
        <Group title="Working" sessions={groups.working} several={several} />
        <Group title="Earlier" sessions={groups.earlier} several={several} />
        {none && sync.listState === "ready" && <p class="side-note faint">{query ? "No session matches." : "No sessions yet."}</p>}
        {none && sync.listState !== "ready" && <p class="side-note faint">Loading…</p>}
        {sync.nextCursor && query === "" && (
          <button type="button" class="more" onClick={() => void sync.moreSessions()}>
            Show older sessions
          </button>
        )}
      </div>
    </nav>
  );
}

function Group({ title, sessions, several }: { title: string; sessions: readonly Session[]; several: boolean }) {
  if (sessions.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>
        {title} <span class="num">{sessions.length}</span>
      </h2>
      <ul>
        {sessions.map((s) => (
          <li key={s.id}>
            <Row session={s} several={several} />
          </li>
        ))}
      </ul>
    </section>
  );
}

/** `several`: providers are side by side in the list, and each row says which is its own. */
function Row({ session, several }: { session: Session; several: boolean }) {
  const model = useModel();
  const e = model.read(`tree:${session.id}`);
  const state = stateOfRoot(e, session.id);
  const turn = latestTurn(e, session.id);
  const agents = turn ? liveAgentCount(e, session.id, turn.id) : 0;
  const on = route.value.session === session.id;
  const verb = turn?.providerTurn?.phase === "ended" ? "waiting for" : "with";
  const doing = agents > 0 && isLive(turn) ? `${verb} ${count(agents, "agent")}` : session.attention === "stalled" ? "silent for a while" : "";
  const note = [several ? model.providerName(session.provider) : "", doing].filter(Boolean).join(" · ");
  return (
    <a
      class={on ? "row on" : "row"}
      data-route
      data-session={session.id}
      aria-current={on ? "page" : undefined}
      href={href({ workspace: session.workspaceId, session: session.id })}
      onClick={() => (model.sidebarOpen.value = false)}
    >
      <Glyph state={state} />
      <span class="row-title">
        {session.pinned && <Icon name="pin" />}
        {nameOf(session)}
      </span>
      <span class="row-age faint">
        <Ago at={turn?.settledAt ?? turn?.createdAt ?? session.createdAt} />
      </span>
      {note && <span class={session.attention === "stalled" && agents === 0 ? "row-note s-stalled" : "row-note faint"}>{note}</span>}
    </a>
  );
}

/** Ids of sessions the daemon finds for a query: it also looks into first messages. */
function useFound(query: string): ReadonlySet<string> {
  const model = useModel();
  const [found, setFound] = useState<ReadonlySet<string>>(new Set());
  const asked = useRef("");
  useEffect(() => {
    asked.current = query;
    setFound(new Set());
    if (query.length < 2) return;
    const timer = setTimeout(() => {
      model.sync
        .peek()
        ?.search(query)
        .then((ids) => asked.current === query && setFound(new Set(ids)))
        .catch(() => undefined); // the local filter has answered already
    }, 200);
    return () => clearTimeout(timer);
  }, [query]);
  return found;
}
