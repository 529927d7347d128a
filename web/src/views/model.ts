// What every view can reach: the entities of the open workspace, the commands, and the
// little state that is the page's own (which lanes are open, what is being typed).

import { batch, computed, effect, signal, untracked, type Signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { statusOf, type Api } from "../data/api";
import type { Entities, Key } from "../data/entities";
import { Live } from "../data/live";
import type { Answer, Interaction, NewSession, Process, ProviderCard, Session, Workspace } from "../data/model";
import { latestTurn, pendingIn, pendingPrompts } from "../data/select";
import { Sync, type Link, type SyncHooks, type Wire } from "../data/sync";
import { nameOf } from "../data/why";
import { narrow, startClock, stopClock } from "../lib/media";
import { navigate, route } from "../lib/router";
import { count } from "../lib/text";

export type DialogName = "new" | "help" | "workspace" | "delete" | "rename";

/** A line that is back sooner than this was never away, for a person. */
const grace = 500;

export class Model {
  readonly link = signal<Link>("connecting");
  /** When the connection was lost, for as long as it is: all that is shown is as of then. */
  readonly lostAt = signal<number | undefined>(undefined);
  /** The question that was gone to; the transcript keeps it in sight while it is drawn. */
  readonly sought = signal<string | undefined>(undefined);
  readonly workspaces = signal<Workspace[] | undefined>(undefined);
  readonly providers = signal<ProviderCard[]>([]);
  readonly sync = signal<Sync | undefined>(undefined);
  readonly live: Live;

  readonly sidebarOpen = signal(false);
  readonly panelOpen = signal(remembered("panel", true));
  readonly panelSheet = signal(false);
  readonly dialog = signal<DialogName | undefined>(undefined);
  readonly query = signal("");
  readonly polite = signal("");
  readonly urgent = signal("");

  readonly workspace = computed(() => this.workspaces.value?.find((w) => w.id === route.value.workspace));

  private readonly lanes = new Map<string, Signal<boolean>>();
  private starting = false;
  private stopFollowing: (() => void) | undefined;

  constructor(
    readonly api: Api,
    private readonly wire: Wire,
  ) {
    this.live = new Live(
      () => this.entities,
      (keys) => this.drawn(keys),
    );
    effect(() => remember("panel", this.panelOpen.value));
    // Whoever goes elsewhere seeks no question any more.
    effect(() => {
      route.value;
      this.sought.value = undefined;
    });
  }

  /** The entities as they are now: for handlers, not for drawing. */
  get entities(): Entities {
    const sync = this.sync.peek();
    if (!sync) throw new Error("no workspace is open");
    return sync.entities;
  }

  /**
   * Entities, with the caller drawn again when one of the keys changes. Every component
   * that draws from the entities must ask through here or `tree`: one whose props are
   * the same is not drawn again for its parent's sake.
   */
  read(...keys: Key[]): Entities {
    this.live.read(...keys);
    return this.entities;
  }

  /** Entities, for a component that draws something of the tree that a session is in. */
  tree(sessionId: string): Entities {
    return this.read(`tree:${this.entities.rootOf(sessionId)}`);
  }

  /** Loads what is needed before a workspace can be shown. Tries for ever while nobody answers. */
  async start(): Promise<void> {
    if (this.starting) return;
    this.starting = true;
    for (let wait = 300; ; wait = Math.min(wait * 2, 5000)) {
      try {
        const [workspaces, providers] = await Promise.all([this.api.workspaces(), this.api.providers()]);
        this.workspaces.value = workspaces;
        this.providers.value = providers;
        break;
      } catch (error) {
        if (statusOf(error) === 401 || statusOf(error) === 403) {
          this.link.value = "signed-out";
          return;
        }
        this.link.value = "reconnecting";
        await new Promise((resolve) => setTimeout(resolve, wait));
      }
    }
    this.stopFollowing = effect(() => {
      const id = route.value.workspace;
      untracked(() => this.follow(id));
    });
  }

  close(): void {
    this.stopFollowing?.();
    this.sync.peek()?.close();
    this.found();
  }

  /** The workspace in the address, else the one used last, else the first. */
  private follow(id: string | undefined): void {
    const all = this.workspaces.value ?? [];
    if (!id) {
      const last = recall("workspace");
      const next = all.find((w) => w.id === last) ?? all[0];
      if (next) navigate({ workspace: next.id }, { replace: true });
      return;
    }
    if (this.sync.peek()?.workspace === id) return;
    this.sync.peek()?.close();
    const hooks: SyncHooks = {
      changed: () => this.live.changed(),
      link: (state) => this.setLink(state),
    };
    this.link.value = "connecting";
    this.found();
    this.lanes.clear();
    const sync = new Sync(this.api, this.wire, id, hooks);
    this.sync.value = sync;
    if (all.some((w) => w.id === id)) remember("workspace", id);
    void sync.start();
  }

  async openWorkspace(name: string, path: string): Promise<void> {
    const made = await this.api.createWorkspace(name, path);
    const others = (this.workspaces.peek() ?? []).filter((w) => w.id !== made.id);
    this.workspaces.value = [...others, made];
    navigate({ workspace: made.id });
  }

  async createSession(body: NewSession, key: string): Promise<void> {
    const sync = this.sync.peek()!;
    const { session } = await sync.command(
      () => this.api.createSession(sync.workspace, body, key),
      (e, seq, made) => {
        e.putSession(made.session, seq);
        if (made.turn) e.putTurn(made.turn, seq);
      },
    );
    this.sidebarOpen.value = false;
    navigate({ workspace: sync.workspace, session: session.id });
    this.say("Session started");
    remember("provider", body.provider);
    when({
      // Not before the dialog is gone: what lies behind it takes no focus. On a phone the
      // keyboard of a text box would cover what was just started.
      find: () => !document.querySelector("dialog[open]") && document.getElementById("composer") && document.getElementById(narrow.peek() ? "main" : "composer"),
      act: (box) => box.focus(),
      still: () => route.peek().session === session.id,
    });
  }

  /** The name of a provider for people. */
  providerName(name: string): string {
    return this.providers.value.find((p) => p.name === name)?.displayName || name;
  }

  /** Looks again at what is installed: it may have come since the page was opened. */
  async refreshProviders(): Promise<void> {
    try {
      this.providers.value = await this.api.providers();
    } catch {
      // what was known stays
    }
  }

  /** The provider that was chosen last. */
  get lastProvider(): string | undefined {
    return recall("provider");
  }

  async send(sessionId: string, clientMessageId: string, text: string): Promise<void> {
    const sync = this.sync.peek()!;
    this.sought.value = undefined; // who writes looks at what is newest
    const sent = await sync.command(
      () => this.api.send(sync.workspace, sessionId, clientMessageId, text),
      (e, seq, answer) => {
        e.putTurn(answer.turn, seq);
        e.putMessage(answer.message, seq);
      },
    );
    this.say(sent.delivery === "started" ? "Sent" : sent.delivery === "queued" ? "Queued for the agent" : "Sent to the running agent");
  }

  async answer(i: Interaction, answer: Answer): Promise<void> {
    const sync = this.sync.peek()!;
    this.sought.value = undefined;
    try {
      await sync.command(
        () => this.api.answer(sync.workspace, i, answer),
        (e, seq, done) => {
          e.putInteraction(done.interaction, seq);
          e.putOperation(done.operation, seq);
        },
      );
    } catch (error) {
      // Someone else may have been first: read how the question stands now.
      if (statusOf(error) === 409) await this.refreshPrompts(i);
      throw error;
    }
    this.say("Answer sent");
  }

  async stop(sessionId: string, turnId: string): Promise<void> {
    const sync = this.sync.peek()!;
    await sync.command(
      () => this.api.cancel(sync.workspace, sessionId, turnId),
      (e, seq, done) => {
        if (done.operation) e.putOperation(done.operation, seq);
      },
    );
    this.say("Stop asked for");
  }

  async stopProcess(process: Process): Promise<void> {
    const sync = this.sync.peek()!;
    await sync.command(
      () => this.api.stopProcess(sync.workspace, process),
      (e, seq, ended) => e.putProcess(ended, seq),
    );
    this.say("Process stopped");
  }

  async rename(sessionId: string, change: { title?: string; pinned?: boolean }): Promise<void> {
    const sync = this.sync.peek()!;
    await sync.command(
      () => this.api.updateSession(sync.workspace, sessionId, change),
      (e, seq, session) => e.putSession(session, seq),
    );
  }

  pin(session: Session): void {
    this.rename(session.id, { pinned: !session.pinned }).then(
      () => this.say(session.pinned ? "Unpinned" : "Pinned to the top"),
      () => this.say("It could not be changed"),
    );
  }

  async remove(sessionId: string): Promise<void> {
    const sync = this.sync.peek()!;
    await sync.command(
      () => this.api.deleteSession(sync.workspace, sessionId),
      (e) => e.remove(sessionId),
    );
    // In one step: its row must not outlive its page.
    batch(() => {
      this.live.flush();
      navigate({ workspace: sync.workspace });
    });
    this.say("Session deleted");
  }

  /** Whether a lane is open; kept while the workspace is. */
  lane(sessionId: string): Signal<boolean> {
    let open = this.lanes.get(sessionId);
    if (!open) this.lanes.set(sessionId, (open = signal(false)));
    return open;
  }

  /** Goes to a question: its card where it can be seen, else its agent's own page. */
  goTo(i: Interaction): void {
    const workspace = this.sync.peek()!.workspace;
    const root = this.entities.rootOf(i.agentSessionId);
    navigate({ workspace, session: root });
    this.sidebarOpen.value = false;
    this.panelSheet.value = false;
    this.seek(i, () => {
      if (root === i.agentSessionId) return;
      navigate({ workspace, session: root, child: i.agentSessionId });
      this.seek(i);
    });
  }

  /** Brings a question of the open page into sight as soon as it is drawn. */
  private seek(i: Interaction, otherwise?: () => void): void {
    const id = questionId(i);
    this.sought.value = id;
    when({
      find: () => document.getElementById(id),
      act: (card) => {
        card.scrollIntoView({ block: "center" });
        card.focus({ preventScroll: true });
      },
      still: () => this.sought.peek() === id,
      loading: () => !this.entities.whole.has(this.entities.rootOf(i.agentSessionId)),
      otherwise,
    });
  }

  /** Opens a session whose tree is not loaded, and goes to its first question once it is. */
  goToFirst(session: Session): void {
    navigate({ workspace: session.workspaceId, session: session.id });
    this.sidebarOpen.value = false;
    const first = () => pendingPrompts(this.entities).find((i) => this.entities.rootOf(i.agentSessionId) === session.id);
    when({
      find: first,
      act: (i) => this.goTo(i),
      still: () => route.peek().session === session.id,
      loading: () => !this.entities.whole.has(session.id),
    });
  }

  /** Closes this dialog, unless another has taken its place: the platform tells of a close late. */
  closeDialog(name: DialogName): void {
    if (this.dialog.peek() === name) this.dialog.value = undefined;
  }

  say(text: string): void {
    this.polite.value = text;
  }

  private async refreshPrompts(i: Interaction): Promise<void> {
    const sync = this.sync.peek()!;
    await sync.command(
      () => this.api.interactions(sync.workspace, i.agentSessionId),
      (e, seq, items) => {
        for (const item of items) e.putInteraction(item, seq);
      },
    );
  }

  private setLink(state: Link): void {
    const before = this.link.peek();
    this.link.value = state;
    if (state === "reconnecting" && before === "live") this.say("Connection lost, reconnecting");
    if (state === "live" && before === "reconnecting") this.say("Connected again");
    if (state === "live") this.found();
    else if (state !== "connecting") this.losing ??= setTimeout(this.lost, grace, this.sync.peek()?.trueAt() ?? Date.now());
  }

  private losing: ReturnType<typeof setTimeout> | undefined;
  private readonly lost = (at: number) => {
    stopClock(at);
    this.lostAt.value = at;
  };

  private found(): void {
    clearTimeout(this.losing);
    this.losing = undefined;
    this.lostAt.value = undefined;
    startClock();
  }

  private asked = new Set<string>();
  private spokenOf = "";
  private settled = new Map<string, string>();

  /** After each drawn frame: speaks of what a person should hear of, once. */
  private drawn(keys: ReadonlySet<Key>): void {
    this.sync.peek()?.gate.noticed(keys);
    const e = this.entities;
    if (keys.has("prompts") || keys.has("*")) {
      const pending = pendingPrompts(e);
      const all = pending.filter((i) => !this.asked.has(questionId(i)));
      const fresh = all[0];
      const session = fresh && e.sessions.get(fresh.agentSessionId);
      const more = all.length > 1 ? ` And ${count(all.length - 1, "other question")}.` : "";
      this.asked = new Set(pending.map(questionId));
      if (fresh) {
        this.spokenOf = questionId(fresh);
        this.urgent.value = `${session ? nameOf(session) : "An agent"} needs your answer: ${fresh.title}${more}`;
      } else if (!this.asked.has(this.spokenOf)) this.urgent.value = ""; // a question that is over asks nobody
    }
    const focused = route.peek().session;
    const turn = focused ? latestTurn(e, focused) : undefined;
    if (focused && turn?.phase === "settled" && this.settled.get(focused) === "open") this.say(`Turn ${turn.outcome ?? "ended"}`);
    if (focused && turn) this.settled.set(focused, turn.phase === "settled" ? "settled" : "open");
  }

  /** Questions that wait for a person, in trees that are loaded and in those that are not. */
  pendingCount(): number {
    const e = this.read("prompts", "list");
    let n = 0;
    for (const s of e.sessions.values()) if (s.kind === "root") n += pendingIn(e, s.id);
    return n;
  }
}

/** Why a button does nothing now. */
export const needsLink = "This needs the connection to the daemon";

export function questionId(i: { turnId: string; requestId: string }): string {
  return `q-${i.turnId}-${i.requestId}`;
}

interface Wish<T> {
  find: () => T | undefined | null | false;
  act: (found: T) => void;
  /** Whether it is wanted still: a person who has gone on is not called back. */
  still: () => boolean;
  /** While this is so, the time does not count. */
  loading?: () => boolean;
  otherwise?: (() => void) | undefined;
}

/** Acts on what is about to be drawn as soon as it is there; gives up after some seconds. */
function when<T>(wish: Wish<T>, tries = 60): void {
  setTimeout(() => {
    if (!wish.still()) return;
    const found = wish.find();
    if (found) wish.act(found);
    else if (wish.loading?.()) when(wish, tries);
    else if (tries > 0) when(wish, tries - 1);
    else wish.otherwise?.();
  }, 50);
}

export const ModelContext = createContext<Model | undefined>(undefined);

export function useModel(): Model {
  const model = useContext(ModelContext);
  if (!model) throw new Error("no model in context");
  return model;
}

function remember(key: string, value: string | boolean): void {
  try {
    localStorage.setItem(`turnkeeper.${key}`, String(value));
  } catch {
    // private mode
  }
}

function recall(key: string): string | undefined {
  try {
    return localStorage.getItem(`turnkeeper.${key}`) ?? undefined;
  } catch {
    return undefined;
  }
}

function remembered(key: string, otherwise: boolean): boolean {
  const value = recall(key);
  return value === undefined ? otherwise : value === "true";
}
