import { useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { route } from "../lib/router";
import { narrow } from "../lib/media";
import { nameOf } from "../data/why";
import { showPending } from "../lib/favicon";
import { Dialogs } from "./dialogs";
import { Header } from "./header";
import { handleKeys } from "./keys";
import { ModelContext, useModel, type Model } from "./model";
import { SessionPage } from "./session";
import { Sidebar } from "./sidebar";
import { FirstWorkspace, SignedOut, Welcome } from "./welcome";

export function App({ model }: { model: Model }) {
  return (
    <ModelContext.Provider value={model}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the transcript
      </a>
      <Shell />
      <Announcer />
    </ModelContext.Provider>
  );
}

/** Moves the focus without touching the address, which is the router's. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Shell() {
  const model = useModel();
  const link = model.link.value;
  useEffect(() => handleKeys(model), [model]);
  if (link === "signed-out") {
    return (
      <div class="shell bare">
        <Header />
        <SignedOut />
      </div>
    );
  }
  const sync = model.sync.value;
  if (!sync) {
    const first = model.workspaces.value?.length === 0;
    return (
      <div class="shell bare">
        <Header />
        {first ? <FirstWorkspace /> : <Waiting />}
        <Dialogs />
      </div>
    );
  }
  return (
    <div class={model.lostAt.value === undefined ? "shell" : "shell lost"}>
      <Title />
      <Header />
      <Sidebar />
      {narrow.value && model.sidebarOpen.value && <div class="backdrop" onClick={() => (model.sidebarOpen.value = false)} />}
      <Page key={sync.workspace} />
      <Dialogs />
    </div>
  );
}

function Page() {
  const { session, child } = route.value;
  const model = useModel();
  if (model.link.value === "gone") return <Nothing text="There is no such workspace here." />;
  return session ? <SessionPage key={session} rootId={session} childId={child} /> : <Welcome />;
}

function Waiting() {
  const link = useModel().link.value;
  return <Nothing text={link === "reconnecting" ? "The daemon cannot be reached. This page goes on as soon as it answers." : "Loading…"} />;
}

function Nothing({ text }: { text: string }) {
  return (
    <main class="page" id="main" tabIndex={-1}>
      <p class="absent soft" role="status">
        {text}
      </p>
    </main>
  );
}

/** The tab says how many questions wait, and what is open. */
function Title() {
  const model = useModel();
  const pending = model.pendingCount();
  const id = route.value.session;
  const session = id === undefined ? undefined : model.entities.sessions.get(id);
  const where = session ? nameOf(session) : model.workspace.value?.name;
  useEffect(() => {
    document.title = `${pending > 0 ? `(${pending}) ` : ""}${where ? `${where} · ` : ""}Turnkeeper`;
    showPending(pending);
  }, [pending, where]);
  return null;
}

/** Speaks changes once; text that streams is never in here. */
function Announcer() {
  const model = useModel();
  useSignalEffect(() => {
    if (model.polite.value === "") return;
    const timer = setTimeout(() => (model.polite.value = ""), 4000);
    return () => clearTimeout(timer);
  });
  return (
    <>
      <div class="sr" role="status" aria-live="polite">
        {model.polite.value}
      </div>
      <div class="sr" role="alert" aria-live="assertive">
        {model.urgent.value}
      </div>
    </>
  );
}
