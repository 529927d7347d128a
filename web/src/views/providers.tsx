// Honest cards of the providers: found or not and why, and what each can confirm.

import { useState } from "preact/hooks";
import type { ProviderCard } from "../data/model";
import { Glyph } from "../ui/glyph";

export function ProviderPick(props: { providers: readonly ProviderCard[]; value: string; onChange: (name: string) => void }) {
  return (
    <fieldset class="cards">
      <legend>Provider</legend>
      {props.providers.map((p) => (
        <label key={p.name} class={`card${p.found ? "" : " off"}${p.name === props.value ? " on" : ""}`}>
          <input
            type="radio"
            name="provider"
            value={p.name}
            checked={p.name === props.value}
            disabled={!p.found}
            onChange={() => props.onChange(p.name)}
          />
          <span class="card-head">
            <b>{p.displayName || p.name}</b>
            {p.version && <span class="faint num">{p.version}</span>}
            {!p.found && (
              <span class="state-word s-failed">
                <Glyph state="failed" word /> not available
              </span>
            )}
          </span>
          {p.reason && <span class="card-line">{p.reason}</span>}
          {p.found && <Notes notes={p.notes} of={p.displayName || p.name} />}
        </label>
      ))}
    </fieldset>
  );
}

/** The first notes say what matters; the rest is one click away. */
function Notes({ notes, of }: { notes: readonly string[]; of: string }) {
  const [all, setAll] = useState(false);
  return (
    <>
      {(all ? notes : notes.slice(0, 2)).map((note) => (
        <span key={note} class="card-line soft">
          {note}
        </span>
      ))}
      {notes.length > 2 && (
        <button
          type="button"
          class="link small card-more"
          aria-expanded={all}
          aria-label={`${all ? "less" : "more"} about ${of}`}
          onClick={(event) => {
            event.preventDefault(); // reading on is not choosing: the card is a label
            setAll(!all);
          }}
        >
          {all ? "less" : "more"}
        </button>
      )}
    </>
  );
}

export function ScenarioPick(props: { card: ProviderCard; value: string; onChange: (id: string) => void }) {
  if (props.card.scenarios.length === 0) return null;
  return (
    <fieldset class="cards scenarios">
      <legend>What it should play</legend>
      {props.card.scenarios.map((s) => (
        <label key={s.id} class={`card${s.id === props.value ? " on" : ""}`}>
          <input type="radio" name="scenario" value={s.id} checked={s.id === props.value} onChange={() => props.onChange(s.id)} />
          <b>{s.title}</b>
          <span class="card-line soft">{s.description}</span>
        </label>
      ))}
    </fieldset>
  );
}
