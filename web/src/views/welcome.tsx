// What stands where no session is open: what can be started, in one click.

import { useState } from "preact/hooks";
import { words } from "../data/api";
import { freshId } from "../lib/id";
import { Glyph } from "../ui/glyph";
import { Icon } from "../ui/icon";
import { WorkspaceForm } from "./dialogs";
import { useModel } from "./model";
import { requestOf } from "./newsession";

export function Welcome() {
  const model = useModel();
  return (
    <main class="page welcome" id="main" tabIndex={-1}>
      <div class="welcome-in">
        <h1>What should be done?</h1>
        <p class="soft">A turn here ends when all of its work has ended, not before. While it is open, one line says why.</p>
        <p class="row">
          <button type="button" class="primary" onClick={() => (model.dialog.value = "new")}>
            <Icon name="plus" /> New session
          </button>
          <span class="faint small">
            or press <kbd>n</kbd>
          </span>
        </p>
        <Scenarios />
        <Providers />
      </div>
    </main>
  );
}

/** What the demo provider can play, each one click away. */
function Scenarios() {
  const model = useModel();
  const demo = model.providers.value.find((p) => p.found && p.scenarios.length > 0);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState("");
  if (!demo) return null;

  const play = (scenario: { id: string; title: string }) => {
    const key = freshId();
    setBusy(scenario.id);
    setError("");
    model
      .createSession(requestOf({ card: demo, scenario: scenario.id, cwd: model.workspace.value?.path ?? "", text: scenario.title, key }), key)
      .catch((cause: unknown) => setError(words(cause)))
      .finally(() => setBusy(""));
  };

  return (
    <section aria-labelledby="try">
      <h2 id="try">Or let {demo.displayName || demo.name} play a scenario</h2>
      <ul class="tiles">
        {demo.scenarios.map((s) => (
          <li key={s.id}>
            <button type="button" class="tile" disabled={busy !== ""} onClick={() => play(s)}>
              <b>{s.title}</b>
              <span class="soft">{busy === s.id ? "Starting…" : s.description}</span>
            </button>
          </li>
        ))}
      </ul>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
    </section>
  );
}

function Providers() {
  return (
    <section aria-labelledby="have">
      <h2 id="have">Providers on this machine</h2>
      <ul class="have">
        {useModel().providers.value.map((p) => (
          <li key={p.name}>
            <Glyph state={p.found ? "completed" : "idle"} word />
            <b>{p.displayName || p.name}</b>
            <span class="soft">{p.found ? [p.version, p.notes[0]].filter(Boolean).join(" · ") : p.reason || "not found"}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function FirstWorkspace() {
  return (
    <main class="page welcome" id="main" tabIndex={-1}>
      <div class="welcome-in">
        <h1>Which directory should agents work in?</h1>
        <WorkspaceForm />
      </div>
    </main>
  );
}

export function SignedOut() {
  return (
    <main class="page welcome locked" id="main" tabIndex={-1}>
      <div class="welcome-in" role="alert">
        <Icon name="lock" />
        <h1>This page is not signed in</h1>
        <p>
          Run <code>turnkeeper open</code> on the machine where the daemon runs. It opens this page with a code that works once.
        </p>
        <p class="faint">The daemon answers only to who can read its token; this page tries nothing by itself.</p>
        <p>
          <button type="button" onClick={() => location.reload()}>
            I have done that
          </button>
        </p>
      </div>
    </main>
  );
}
