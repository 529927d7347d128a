// The small dialogs: help, a new workspace, rename, delete.

import { useState } from "preact/hooks";
import { words } from "../data/api";
import { nameOf } from "../data/why";
import { route } from "../lib/router";
import { Dialog } from "../ui/dialog";
import { useModel } from "./model";
import { NewSessionDialog } from "./newsession";

export function Dialogs() {
  const model = useModel();
  switch (model.dialog.value) {
    case "new":
      return <NewSessionDialog />;
    case "help":
      return <Help />;
    case "workspace":
      return <NewWorkspace />;
    case "rename":
      return <Rename />;
    case "delete":
      return <Delete />;
    default:
      return null;
  }
}

export const shortcuts: readonly [string, string][] = [
  ["j k", "next, previous session"],
  ["n", "new session"],
  ["/", "search"],
  ["a", "go to the next question"],
  ["c", "write to the agent"],
  ["w", "why is it open? From there: close"],
  ["u", "from an agent up to its session"],
  ["Enter", "send; Shift+Enter for a new line"],
  ["Esc", "close, or leave the box"],
  ["?", "this list"],
];

function Help() {
  const model = useModel();
  return (
    <Dialog title="Keys" onClose={() => model.closeDialog("help")}>
      <dl class="keys">
        {shortcuts.map(([key, what]) => (
          <div key={key}>
            <dt>
              {key.split(" ").map((k) => (
                <kbd key={k}>{k}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function NewWorkspace() {
  const model = useModel();
  return (
    <Dialog title="Open a directory" onClose={() => model.closeDialog("workspace")}>
      <WorkspaceForm onDone={() => model.closeDialog("workspace")} />
    </Dialog>
  );
}

export function WorkspaceForm({ onDone }: { onDone?: () => void }) {
  const model = useModel();
  const [path, setPath] = useState("");
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const submit = async () => {
    setError("");
    try {
      await model.openWorkspace(name.trim(), path.trim());
      onDone?.();
    } catch (cause) {
      setError(words(cause));
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
        <span>Directory</span>
        <input type="text" class="mono" placeholder="/home/you/project" required value={path} onInput={(e) => setPath(e.currentTarget.value)} />
      </label>
      <label class="field">
        <span>Name</span>
        <input type="text" placeholder="the directory’s own" value={name} onInput={(e) => setName(e.currentTarget.value)} />
      </label>
      <p class="faint small">An absolute path on the machine that runs the daemon. Nothing in it is changed by opening it.</p>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <button type="submit" class="primary" disabled={path.trim() === ""}>
          Open
        </button>
      </footer>
    </form>
  );
}

function Rename() {
  const model = useModel();
  const session = model.tree(route.value.session ?? "").sessions.get(route.value.session ?? "");
  const [title, setTitle] = useState(session?.title ?? "");
  const [error, setError] = useState("");
  const close = () => model.closeDialog("rename");
  if (!session) return null;
  return (
    <Dialog title="Rename the session" onClose={close}>
      <form
        class="new-session"
        onSubmit={(event) => {
          event.preventDefault();
          model.rename(session.id, { title: title.trim() }).then(close, (cause: unknown) => setError(words(cause)));
        }}
      >
        <label class="field">
          <span>Title</span>
          <input type="text" autofocus maxLength={500} value={title} onInput={(e) => setTitle(e.currentTarget.value)} />
        </label>
        {error && (
          <p class="error" role="alert">
            {error}
          </p>
        )}
        <footer class="dialog-foot">
          <button type="submit" class="primary" disabled={title.trim() === ""}>
            Rename
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function Delete() {
  const model = useModel();
  const session = model.tree(route.value.session ?? "").sessions.get(route.value.session ?? "");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const close = () => model.closeDialog("delete");
  if (!session) return null;
  const remove = () => {
    setBusy(true);
    setError("");
    model
      .remove(session.id)
      .then(close, (cause: unknown) => setError(words(cause)))
      .finally(() => setBusy(false));
  };
  return (
    <Dialog title="Delete the session?" onClose={close}>
      <p>
        <b>{nameOf(session)}</b> and every agent below it are deleted, with their messages. What still runs is stopped. This cannot be undone.
      </p>
      {error && (
        <p class="error" role="alert">
          {error}
        </p>
      )}
      <footer class="dialog-foot">
        <button type="button" onClick={close} disabled={busy} autofocus>
          Keep it
        </button>
        <button type="button" class="danger" disabled={busy} onClick={remove}>
          {busy ? "Deleting…" : "Delete"}
        </button>
      </footer>
    </Dialog>
  );
}
