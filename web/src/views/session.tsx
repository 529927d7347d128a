// The page of one session: its transcript, the line that says why it is open, the
// composer, and the panel. A child's page shows the child's transcript with the root's line.

import { useEffect } from "preact/hooks";
import type { Session } from "../data/model";
import { ancestry, isLive, latestTurn, stateOf, stateWords } from "../data/select";
import { nameOf } from "../data/why";
import { tight } from "../lib/media";
import { href } from "../lib/router";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { Menu } from "../ui/menu";
import { Elapsed } from "../ui/time";
import { Composer } from "./composer";
import { StopChild } from "./lane";
import { needsLink, useModel } from "./model";
import { closePanel, Panel, panelOf } from "./panel";
import { Transcript } from "./transcript";
import { WhyLine } from "./whyline";

export function SessionPage({ rootId, childId }: { rootId: string; childId?: string | undefined }) {
  const model = useModel();
  const sync = model.sync.value!;
  const e = model.read(`tree:${rootId}`);
  const state = sync.treeStates.get(rootId);
  const root = e.sessions.get(rootId);
  const child = childId === undefined ? undefined : e.sessions.get(childId);

  useEffect(() => {
    void sync.openTree(rootId);
    void sync.openThread(rootId); // also below a child's page: what the main agent said last is part of the line
    sync.gate.watch(rootId);
    return () => sync.gate.watch(undefined);
  }, [sync, rootId]);

  if (!root || (childId !== undefined && !child)) return <Absent state={root ? "missing" : state} deleted={e.deleted.has(childId ?? rootId)} />;
  const sheet = tight.value;
  const open = panelOf(model);
  return (
    <>
      <main class="page" id="main" tabIndex={-1}>
        {child ? <ChildHead rootId={rootId} child={child} /> : <RootHead session={root} />}
        <Transcript key={child?.id ?? rootId} sessionId={child?.id ?? rootId} />
        <div class="dock">
          <div class="dock-in">
            <WhyLine rootId={rootId} />
            <Composer rootId={rootId} below={child !== undefined} />
          </div>
        </div>
      </main>
      {open.value && (
        <>
          {sheet && <div class="backdrop" onClick={() => (open.value = false)} />}
          <Panel rootId={rootId} onClose={() => closePanel(model)} />
        </>
      )}
    </>
  );
}

function RootHead({ session }: { session: Session }) {
  const model = useModel();
  const lost = model.lostAt.value !== undefined;
  return (
    <header class="page-head">
      <h1 title={nameOf(session)}>{nameOf(session)}</h1>
      <span class="head-facts faint">{[model.providerName(session.provider), session.model].filter(Boolean).join(" · ")}</span>
      <Menu label="Session actions" class="quiet square" align="right" button={<Icon name="more" />}>
        {(close) => (
          <>
            <button type="button" onClick={() => (close(), (model.dialog.value = "rename"))}>
              Rename…
            </button>
            <button type="button" disabled={lost} title={lost ? needsLink : undefined} onClick={() => (close(), model.pin(session))}>
              {session.pinned ? "Unpin" : "Pin to the top"}
            </button>
            <button type="button" class="s-failed" onClick={() => (close(), (model.dialog.value = "delete"))}>
              Delete…
            </button>
          </>
        )}
      </Menu>
    </header>
  );
}

function ChildHead({ rootId, child }: { rootId: string; child: Session }) {
  const model = useModel();
  const e = model.tree(child.id);
  const path = ancestry(e, child.id).slice(0, -1);
  const turn = latestTurn(e, child.id);
  const state = stateOf(e, child.id);
  return (
    <header class="page-head child">
      <nav class="crumbs" aria-label="Where this agent belongs">
        {path.map((s) => (
          <a key={s.id} data-route href={href({ workspace: s.workspaceId, session: rootId, ...(s.id === rootId ? {} : { child: s.id }) })}>
            {s.id === rootId && <Icon name="back" />}
            {nameOf(s)}
          </a>
        ))}
      </nav>
      <div class="child-line">
        <Glyph state={state} word />
        <h1>{nameOf(child)}</h1>
        <span class={`state-word s-${state}`}>{stateWords[state]}</span>
        <span class="head-facts faint">
          {[child.agentType, child.model].filter(Boolean).join(" · ")} {turn && <Elapsed since={turn.startedAt ?? turn.createdAt} until={turn.settledAt} />}
        </span>
        {isLive(turn) && <StopChild session={child} label="Stop this agent" bare />}
      </div>
      {child.prompt && <blockquote class="lane-prompt">{child.prompt}</blockquote>}
    </header>
  );
}

function Absent({ state, deleted }: { state: string | undefined; deleted: boolean }) {
  const text = deleted
    ? "This session was deleted."
    : state === "missing"
      ? "There is no such session here."
      : state === "failed"
        ? "The session could not be read. Trying again…"
        : "Loading…";
  return (
    <main class="page" id="main" tabIndex={-1}>
      <p class="absent soft" role="status">
        {text}
      </p>
    </main>
  );
}
