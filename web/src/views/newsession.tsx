import { useEffect, useRef, useState } from "preact/hooks";
import { statusOf, words } from "../data/api";
import type { NewSession, ProviderCard } from "../data/model";
import { freshId } from "../lib/id";
import { Dialog } from "../ui/dialog";
import { useModel } from "./model";
import { ProviderPick, ScenarioPick } from "./providers";

export function NewSessionDialog() {
  const model = useModel();
  const close = () => model.closeDialog("new");
  useEffect(() => void model.refreshProviders(), [model]);
  return (
    <Dialog title="New session" onClose={close} wide>
      <NewSessionForm onDone={close} />
    </Dialog>
  );
}

function NewSessionForm({ onDone }: { onDone: () => void }) {
  const model = useModel();
  const providers = model.providers.value;
  const workspace = model.workspace.value;
  const [wish, setWish] = useState<Wish>({
    provider: firstUsable(providers, model.lastProvider)?.name ?? "", scenario: "", text: "", cwd: workspace?.path ?? "", model: "", permissionMode: "",
  });
  const change = (part: Partial<Wish>) => setWish((old) => ({ ...old, ...part }));
  const card = providers.find((p) => p.name === wish.provider);
  const plays = card?.scenarios.find((s) => s.id === wish.scenario) ?? card?.scenarios[0];
  const text = wish.text.trim() !== "" ? wish.text : (plays?.title ?? "");
  const { start, busy, error } = useStart(onDone);
  const submit = (event: Event) => {
    event.preventDefault();
    if (card?.found && text !== "") void start((key) => requestOf({ ...wish, card, scenario: plays?.id, text, key }));
  };

  return (
    <form class="new-session" onSubmit={submit}>
      <label class="field">
        <span>Message</span>
        <textarea
          rows={3}
          autofocus
          placeholder={plays ? `“${plays.title}”, or your own words` : "What should the agent do?"}
          value={wish.text}
          onInput={(e) => change({ text: e.currentTarget.value })}
          onKeyDown={(e) => {
            if (e.key === "Enter" && (e.metaKey || e.ctrlKey)) submit(e);
          }}
        />
      </label>
      <ProviderPick providers={providers} value={wish.provider} onChange={(provider) => change({ provider, model: "", permissionMode: "" })} />
      {card && <ScenarioPick card={card} value={plays?.id ?? ""} onChange={(scenario) => change({ scenario })} />}
      {card && <Settings card={card} wish={wish} onChange={change} />}
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <span class="faint small">in {workspace?.name ?? "this workspace"}</span>
        <button type="submit" class="primary" disabled={!card?.found || text === "" || busy}>
          {busy ? "Starting…" : "Start"}
        </button>
      </footer>
    </form>
  );
}

interface Wish {
  provider: string;
  scenario: string;
  text: string;
  cwd: string;
  model: string;
  permissionMode: string;
}

/** Starts a session. What was refused may be changed and asked anew; a lost answer is asked for again. */
function useStart(onDone: () => void) {
  const model = useModel();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const key = useRef(freshId());
  const start = async (make: (key: string) => NewSession) => {
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      await model.createSession(make(key.current), key.current);
      onDone();
    } catch (cause) {
      setError(words(cause));
      if (statusOf(cause) !== 0) key.current = freshId();
    } finally {
      setBusy(false);
    }
  };
  return { start, busy, error };
}

function Settings({ card, wish, onChange }: { card: ProviderCard; wish: Wish; onChange: (part: Partial<Wish>) => void }) {
  return (
    <div class="fields">
      <label class="field">
        <span>Directory</span>
        <input type="text" class="mono" value={wish.cwd} onInput={(e) => onChange({ cwd: e.currentTarget.value })} />
      </label>
      {card.models.length > 0 && <Choice label="Model" options={card.models} value={wish.model} onChange={(model) => onChange({ model })} />}
      {card.permissionModes.length > 0 && (
        <Choice label="Permissions" options={card.permissionModes} value={wish.permissionMode} onChange={(permissionMode) => onChange({ permissionMode })} />
      )}
    </div>
  );
}

function Choice(props: { label: string; options: readonly string[]; value: string; onChange: (value: string) => void }) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(e) => props.onChange(e.currentTarget.value)}>
        <option value="">Provider’s default</option>
        {props.options.map((o) => (
          <option key={o} value={o}>
            {o}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The one that was used last; else one that anybody can try; else any. */
export function firstUsable(providers: readonly ProviderCard[], last?: string): ProviderCard | undefined {
  return providers.find((p) => p.found && p.name === last) ?? providers.find((p) => p.found && p.scenarios.length > 0) ?? providers.find((p) => p.found);
}

export function requestOf(c: {
  card: ProviderCard;
  scenario?: string | undefined;
  cwd: string;
  model?: string;
  permissionMode?: string;
  text: string;
  key: string;
}): NewSession {
  const body: NewSession = {
    provider: c.card.name,
    message: { clientMessageId: c.key, content: [{ type: "text", text: c.text }] },
  };
  if (c.scenario) body.scenario = c.scenario;
  if (c.cwd.trim() !== "") body.cwd = c.cwd.trim();
  if (c.model) body.model = c.model;
  if (c.permissionMode) body.permissionMode = c.permissionMode;
  return body;
}
