import { pendingPrompts } from "../data/select";
import type { Link } from "../data/sync";
import { narrow, setTheme, theme, type Theme } from "../lib/media";
import { href, navigate, route } from "../lib/router";
import { Icon } from "../ui/icon";
import { Menu } from "../ui/menu";
import { useModel } from "./model";

export function Header() {
  const model = useModel();
  return (
    <header class="top">
      {narrow.value && model.sync.value && (
        <button
          type="button"
          class="quiet square"
          aria-label="Sessions"
          aria-expanded={model.sidebarOpen.value}
          onClick={() => (model.sidebarOpen.value = !model.sidebarOpen.value)}
        >
          <Icon name="menu" />
        </button>
      )}
      <a class="brand" aria-label="Turnkeeper" data-route href={href(model.sync.value ? { workspace: model.sync.value.workspace } : {})}>
        <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
          <path d="M4 3v14M4 7h6a4 4 0 0 1 4 4v6M4 12h3" />
          <circle cx="14" cy="17" r="2" />
        </svg>
        <b>Turnkeeper</b>
      </a>
      <WorkspaceMenu />
      <span class="grow" />
      {model.sync.value && <NeedsYou />}
      <Connection />
      <ThemeMenu />
      <button type="button" class="quiet square wide-only" aria-label="Keys" title="Keys (?)" onClick={() => (model.dialog.value = "help")}>
        <Icon name="help" />
      </button>
    </header>
  );
}

function WorkspaceMenu() {
  const model = useModel();
  const all = model.workspaces.value ?? [];
  const here = model.workspace.value;
  if (all.length === 0) return null;
  return (
    <Menu
      label={`Workspace ${here?.name ?? ""}`}
      class="quiet ws-button"
      button={
        <>
          <span class="ws-name">{here?.name ?? "Workspace"}</span>
          <Icon name="down" />
        </>
      }
    >
      {(close) => (
        <>
          {all.map((w) => (
            <button
              type="button"
              key={w.id}
              aria-current={w.id === here?.id}
              onClick={() => {
                close();
                navigate({ workspace: w.id });
              }}
            >
              <b>{w.name}</b>
              <small class="faint mono">{w.path}</small>
            </button>
          ))}
          <hr />
          <button type="button" onClick={() => (close(), (model.dialog.value = "workspace"))}>
            Open another directory…
          </button>
        </>
      )}
    </Menu>
  );
}

/** Every open question, reachable from everywhere. */
function NeedsYou() {
  const model = useModel();
  const n = model.pendingCount();
  if (n === 0) return null;
  // Pressing it must not take the focus from the question at which the person is: which one is next follows from that.
  return (
    <button type="button" class="pill" onMouseDown={(e) => e.preventDefault()} onClick={() => nextQuestion(model)} title="Go to the question (a)">
      {n} {n === 1 ? "needs" : "need"} you
    </button>
  );
}

/** The next question after the one in focus; of this session first, at last those of sessions that are not loaded. */
export function nextQuestion(model: ReturnType<typeof useModel>): void {
  const e = model.entities;
  const here = route.peek().session;
  const all = pendingPrompts(e).filter((i) => e.sessions.has(i.agentSessionId));
  all.sort((a, b) => Number(e.rootOf(b.agentSessionId) === here) - Number(e.rootOf(a.agentSessionId) === here));
  const focused = document.activeElement?.closest(".question")?.id;
  const at = all.findIndex((i) => focused === `q-${i.turnId}-${i.requestId}`);
  // A question in a tree that is not loaded: opening its session loads it.
  const session = [...e.sessions.values()].find((s) => s.kind === "root" && s.pendingInteractionCount > 0 && !e.whole.has(s.id));
  if (session && at === all.length - 1) return model.goToFirst(session);
  const next = all[(at + 1) % all.length];
  if (next) model.goTo(next);
}

const words: Record<Link, string> = {
  connecting: "connecting",
  live: "live",
  reconnecting: "reconnecting",
  "signed-out": "signed out",
  gone: "no such workspace",
  outdated: "reload for the new version",
};

function Connection() {
  const model = useModel();
  const link = model.link.value;
  return (
    <span class={`conn c-${link}`} title="How far this page has followed the daemon's log">
      <i aria-hidden="true" />
      <span class="conn-word">{words[link]}</span>
      {link === "live" && model.sync.value && <Cursor />}
    </span>
  );
}

function Cursor() {
  const model = useModel();
  const seq = model.read("seq").seq;
  return <span class="num conn-seq">{seq.toLocaleString("en").replaceAll(",", "\u2009")}</span>;
}

const themes: readonly [Theme, string, "half" | "sun" | "moon"][] = [
  ["auto", "As the system", "half"],
  ["light", "Light", "sun"],
  ["dark", "Dark", "moon"],
];

function ThemeMenu() {
  const icon = themes.find(([t]) => t === theme.value)?.[2] ?? "half";
  return (
    <Menu label="Theme" class="quiet square" align="right" button={<Icon name={icon} />}>
      {(close) =>
        themes.map(([t, label, name]) => (
          <button
            type="button"
            key={t}
            aria-current={t === theme.value}
            onClick={() => {
              close();
              setTheme(t);
            }}
          >
            <span class="menu-icon">
              <Icon name={name} /> {label}
            </span>
          </button>
        ))
      }
    </Menu>
  );
}
