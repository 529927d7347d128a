// State as shape, word and colour. Shapes are drawn, so that no font is missing.

import type { State } from "../data/select";
import { stateWords } from "../data/select";

const shapes: Record<State, preact.JSX.Element> = {
  ask: (
    <>
      <circle cx="8" cy="8" r="7" class="fill" />
      <path d="M5.9 6.2a2.1 2.1 0 1 1 3 1.9c-.6.3-.9.7-.9 1.4" class="knock" />
      <circle cx="8" cy="11.6" r=".9" class="knock-dot" />
    </>
  ),
  working: <circle cx="8" cy="8" r="5.5" class="ring" stroke-dasharray="26 9" />,
  waiting: (
    <>
      <circle cx="8" cy="8" r="5.5" stroke-dasharray="2.2 2.12" />
      <circle cx="8" cy="8" r="1.6" class="dot" />
    </>
  ),
  submitted: (
    <>
      <circle cx="3.2" cy="8" r="1.3" class="dot" />
      <circle cx="8" cy="8" r="1.3" class="dot" />
      <circle cx="12.8" cy="8" r="1.3" class="dot" />
    </>
  ),
  stopping: (
    <>
      <circle cx="8" cy="8" r="5.8" class="ring" stroke-dasharray="26 10.4" />
      <rect x="6" y="6" width="4" height="4" class="dot" />
    </>
  ),
  completed: <path d="M3 8.6 6.4 12 13 4.6" />,
  failed: <path d="m4 4 8 8m0-8-8 8" />,
  canceled: <rect x="3.5" y="3.5" width="9" height="9" rx="1" class="dot" />,
  interrupted: (
    <>
      <rect x="3.5" y="3.5" width="9" height="9" rx="1" />
      <path d="M4 4h4v8H4z" class="dot" />
    </>
  ),
  idle: <circle cx="8" cy="8" r="3" />,
};

/** `word` hides the glyph from assistive technology where the word stands beside it anyway. */
export function Glyph({ state, word = false }: { state: State; word?: boolean }) {
  const label = word ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": stateWords[state] };
  return (
    <svg class={`glyph s-${state}`} viewBox="0 0 16 16" {...label}>
      {shapes[state]}
    </svg>
  );
}
