// The card under which one or more calls launched agents. Its call's success means that
// the work was accepted; how it went is each lane's own.

import type { Block } from "../data/transcript";
import { stateOf, stateWords, tally } from "../data/select";
import { count } from "../lib/text";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { LaneList } from "./lane";
import { useModel } from "./model";

export function Delegation({ block, depth }: { block: Extract<Block, { kind: "delegation" }>; depth: number }) {
  const model = useModel();
  const e = model.tree(block.children[0]?.id ?? "");
  const sessions = block.children.filter((s) => e.sessions.has(s.id));
  if (sessions.length === 0) return null;
  const title = `Delegated to ${count(sessions.length, "agent")}`;
  return (
    <section class="deleg" aria-label={title}>
      <header class="deleg-head">
        <Icon name="fork" />
        <h3>{title}</h3>
        <Progress states={sessions.map((s) => stateOf(e, s.id))} />
        <ul class="counts num" aria-label="How they stand">
          {tally(e, sessions).map(([state, n]) => (
            <li key={state} class={`s-${state}`}>
              <Glyph state={state} word />
              {n} {stateWords[state]}
            </li>
          ))}
        </ul>
      </header>
      <LaneList ids={sessions.map((s) => s.id)} depth={depth} class="lanes" />
    </section>
  );
}

/** One mark for each agent, in the order of the lanes. */
function Progress({ states }: { states: readonly string[] }) {
  if (states.length < 2 || states.length > 60) return <span class="grow" />;
  return (
    <span class="progress grow" aria-hidden="true">
      {states.map((state, i) => (
        <i key={i} class={`s-${state}`} />
      ))}
    </span>
  );
}
