import { useRef, useState } from "preact/hooks";
import { words } from "../data/api";
import type { NewSession, ProviderCard } from "../data/model";
import { freshId } from "../lib/id";
import { Dialog } from "../ui/dialog";
import { useModel } from "./model";
import { ProviderPick, ScenarioPick } from "./providers";

export function NewSessionDialog() {
  const model = useModel();
  const close = () => model.closeDialog("new");
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
  const [name, setName] = useState(firstUsable(providers)?.name ?? "");
  const card = providers.find((p) => p.name === name);
  const [scenario, setScenario] = useState("");
  const [text, setText] = useState("");
  const [cwd, setCwd] = useState(workspace?.path ?? "");
  const [chosen, setChosen] = useState({ model: "", permissionMode: "" });
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const key = useRef(freshId());
  const plays = card?.scenarios.find((s) => s.id === scenario) ?? card?.scenarios[0];
  const message = text.trim() !== "" ? text : (plays?.title ?? "");

  const submit = async () => {
    if (!card || message === "" || busy) return;
    setBusy(true);
    setError("");
    try {
      await model.createSession(requestOf({ card, scenario: plays?.id, cwd, text: message, key: key.current, ...chosen }), key.current);
      onDone();
    } catch (cause) {
      setError(words(cause));
      key.current = freshId(); // what was refused may be changed and asked anew
    } finally {
      setBusy(false);
    }
  };

  return (
    <form
      class="new-session"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <label class="field">
        <span>Message</span>
        <textarea
          rows={3}
          autofocus
          placeholder={plays ? `“${plays.title}”, or your own words` : "What should the agent do?"}
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key !== "Enter" || !(e.metaKey || e.ctrlKey)) return;
            e.preventDefault();
            void submit();
          }}
        />
      </label>
      <ProviderPick providers={providers} value={name} onChange={setName} />
      {card && <ScenarioPick card={card} value={plays?.id ?? ""} onChange={setScenario} />}
      <div class="fields">
        <label class="field">
          <span>Directory</span>
          <input type="text" class="mono" value={cwd} onInput={(e) => setCwd(e.currentTarget.value)} />
        </label>
        {card && card.models.length > 0 && (
          <Choice label="Model" options={card.models} value={chosen.model} onChange={(m) => setChosen({ ...chosen, model: m })} />
        )}
        {card && card.permissionModes.length > 0 && (
          <Choice
            label="Permissions"
            options={card.permissionModes}
            value={chosen.permissionMode}
            onChange={(m) => setChosen({ ...chosen, permissionMode: m })}
          />
        )}
      </div>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <span class="faint small">in {workspace?.name ?? "this workspace"}</span>
        <button type="submit" class="primary" disabled={!card || message === "" || busy}>
          {busy ? "Starting…" : "Start"}
        </button>
      </footer>
    </form>
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

export function firstUsable(providers: readonly ProviderCard[]): ProviderCard | undefined {
  return providers.find((p) => p.found && p.scenarios.length > 0) ?? providers.find((p) => p.found);
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
