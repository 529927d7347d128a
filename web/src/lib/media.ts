// Width of the page and choice of theme, as signals.

import { signal, type ReadonlySignal } from "@preact/signals";

function media(query: string): ReadonlySignal<boolean> {
  const list = matchMedia(query);
  const s = signal(list.matches);
  list.addEventListener("change", () => (s.value = list.matches));
  return s;
}

/** The sidebar becomes a sheet. */
export const narrow = media("(max-width: 760px)");
/** The panel at the right becomes a sheet. */
export const tight = media("(max-width: 1120px)");

export type Theme = "auto" | "light" | "dark";
const key = "turnkeeper.theme";

export const theme = signal<Theme>(stored());

function stored(): Theme {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

export function setTheme(next: Theme): void {
  theme.value = next;
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  try {
    if (next === "auto") localStorage.removeItem(key);
    else localStorage.setItem(key, next);
  } catch {
    // private mode: the choice lasts as long as the page
  }
}

/** One clock for everything that counts seconds. It rests while nobody looks. */
export const now = signal(Date.now());
let stopped = false;
setInterval(() => {
  if (!document.hidden && !stopped) now.value = Date.now();
}, 1000);

/** Holds the clock at this time: what nobody can know any more must not seem to go on. */
export function stopClock(at: number): void {
  stopped = true;
  now.value = at;
}

export function startClock(): void {
  if (stopped) now.value = Date.now();
  stopped = false;
}
