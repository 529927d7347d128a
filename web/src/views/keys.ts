// Keys of the page. None of them acts while something is being typed.

import { grouped } from "../data/select";
import { navigate, route } from "../lib/router";
import { nextQuestion } from "./header";
import type { Model } from "./model";
import { closePanel, togglePanel } from "./panel";

export function handleKeys(model: Model): () => void {
  const keydown = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (document.querySelector("dialog[open]")) return;
    const typing = isTyping(event.target);
    if (event.key === "Escape") return escape(model, typing ? (event.target as HTMLElement) : undefined);
    if (typing || !model.sync.peek()) return;
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act(model);
  };
  addEventListener("keydown", keydown);
  return () => removeEventListener("keydown", keydown);
}

const actions: Record<string, (model: Model) => void> = {
  j: (m) => step(m, 1),
  k: (m) => step(m, -1),
  n: (m) => (m.dialog.value = "new"),
  "?": (m) => (m.dialog.value = "help"),
  "/": (m) => {
    m.sidebarOpen.value = true;
    const search = () => document.getElementById("search")?.focus();
    search(); // at once: what is typed next must not be taken for keys
    setTimeout(search); // where the sidebar is a sheet it takes the focus only once it is drawn
  },
  a: nextQuestion,
  c: () => document.getElementById("composer")?.focus(),
  w: togglePanel,
  u: () => {
    const { workspace, session, child } = route.peek();
    if (workspace && session && child) navigate({ workspace, session });
  },
};

function escape(model: Model, field: HTMLElement | undefined): void {
  if (field) {
    if (field.id === "search") model.query.value = "";
    field.blur();
  } else if (model.sidebarOpen.peek()) model.sidebarOpen.value = false;
  else if (model.panelSheet.peek()) closePanel(model);
}

function step(model: Model, by: number): void {
  const groups = grouped(model.entities);
  const ids = [...groups.needsYou, ...groups.working, ...groups.earlier].map((s) => s.id);
  const { workspace, session } = route.peek();
  if (ids.length === 0 || !workspace) return;
  const at = session ? ids.indexOf(session) : -1;
  const to = at < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.max(0, Math.min(ids.length - 1, at + by));
  navigate({ workspace, session: ids[to]! });
  setTimeout(() => document.querySelector(`.row[data-session="${CSS.escape(ids[to]!)}"]`)?.scrollIntoView({ block: "nearest" }));
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}
