// Addresses of the view: /w/WORKSPACE/s/SESSION[/CHILD], below the path it is served at.

import { signal } from "@preact/signals";

export interface Route {
  workspace?: string;
  session?: string;
  child?: string;
}

export function parsePath(path: string): Route {
  const parts = path.split("/").filter((p) => p !== "").map(decodeURIComponent);
  const [w, workspace, s, session, child] = parts;
  if (w !== "w" || !workspace) return {};
  if (s !== "s" || !session) return { workspace };
  return child ? { workspace, session, child } : { workspace, session };
}

export function formatPath(route: Route): string {
  if (!route.workspace) return "";
  const parts = ["w", route.workspace];
  if (route.session) parts.push("s", route.session);
  if (route.session && route.child) parts.push(route.child);
  return parts.map(encodeURIComponent).join("/");
}

let base = "/";

/** The address of a route, for links. */
export function href(route: Route): string {
  return base + formatPath(route);
}

export const route = signal<Route>({});

function current(): Route {
  const path = location.pathname;
  return parsePath(path.startsWith(base) ? path.slice(base.length) : path);
}

export function navigate(to: Route, options: { replace?: boolean } = {}): void {
  const url = href(to);
  if (url !== location.pathname) {
    if (options.replace) history.replaceState(null, "", url);
    else history.pushState(null, "", url);
  }
  if (formatPath(route.peek()) !== formatPath(to)) route.value = to;
}

/** Follows the address bar, and turns clicks on our own links into navigation. `at` is where the view is served. */
export function startRouter(at = "/"): () => void {
  base = at;
  route.value = current();
  const follow = () => (route.value = current());
  const click = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a[data-route]");
    if (!(link instanceof HTMLAnchorElement)) return;
    event.preventDefault();
    if (link.pathname !== location.pathname) history.pushState(null, "", link.pathname);
    route.value = current();
  };
  addEventListener("popstate", follow);
  document.addEventListener("click", click);
  return () => {
    removeEventListener("popstate", follow);
    document.removeEventListener("click", click);
  };
}
