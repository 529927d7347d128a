// @vitest-environment happy-dom
// @vitest-environment-options {"url": "http://localhost/"}
import { cleanup, configure, fireEvent, render, screen, waitFor, within } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Unreachable } from "../src/data/api";
import type { Answer, Interaction, NewSession, ProviderCard } from "../src/data/model";
import { FakeDaemon, refusal } from "./fake";
import { at, child, interaction, message, operation, session, turn } from "./fixtures";

configure({ asyncUtilTimeout: 10_000 }); // a busy machine draws late
vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("IntersectionObserver", class { observe() {} disconnect() {} });
vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} });

const { App } = await import("../src/views/app");
const { ProviderPick } = await import("../src/views/providers");
const { Model } = await import("../src/views/model");
const { navigate, startRouter } = await import("../src/lib/router");

let daemon: FakeDaemon;
let stopRouter: () => void;
let model: InstanceType<typeof Model>;
const given: { to: Interaction; answer: Answer }[] = [];

beforeEach(() => {
  localStorage.clear();
  given.length = 0;
  daemon = new FakeDaemon();
  daemon.commit("session.created", session("R", { title: "Review the change" }));
  daemon.commit("turn.created", turn("T", "R", { phase: "waiting", providerTurn: { id: "p", phase: "ended", outcome: "completed" } }));
  daemon.commit("message.created", message("u", "R", 3, { role: "user", content: "Review it" }));
  for (const id of ["Security", "Tests"]) {
    daemon.commit("session.created", child(id, "R", { parentToolCallId: `call-${id}`, prompt: `Look at ${id}` }));
    daemon.commit("turn.created", turn(`t${id}`, id, { rootTurnId: "T", phase: id === "Security" ? "waiting" : "running" }));
    daemon.commit("message.created", message(`d${id}`, "R", daemon.seq + 1, { role: "tool", kind: "tool_call", callId: `call-${id}`, childSessionId: id }));
  }
  daemon.commit("message.created", message("c", "Tests", daemon.seq + 1, { role: "tool", kind: "tool_call", title: "go test", status: "streaming" }));
  daemon.commit("interaction.created", interaction("q", "Security", "tSecurity", { title: "Run the fuzz test?" }));
  Object.assign(daemon.api, {
    workspaces: () => Promise.resolve([{ id: "ws", name: "shop", path: "/home/you/shop", createdAt: "" }]),
    providers: () => Promise.resolve([]),
    answer: (_: string, to: Interaction, answer: Answer) => {
      given.push({ to, answer });
      const answering = { ...to, status: "answering" as const, response: answer };
      daemon.commit("interaction.updated", answering);
      return Promise.resolve({ interaction: answering, operation: operation("o", to.agentSessionId, to.turnId, { kind: "answer", targets: [] }) });
    },
  });
  stopRouter = startRouter();
});

afterEach(() => {
  cleanup();
  model.close();
  stopRouter();
});

async function open(): Promise<Element> {
  model = new Model(daemon.api, daemon.wire);
  navigate({ workspace: "ws", session: "R" });
  const { container } = render(<App model={model} />);
  await model.start();
  await screen.findByRole("region", { name: "Security, needs you" });
  return container;
}

describe("the session page", () => {
  it("draws children as lanes under their card, never as rows of the root", async () => {
    await open();
    const card = screen.getByRole("region", { name: "Delegated to 2 agents" });
    expect(within(card).getByRole("region", { name: "Tests, working" })).toBeTruthy();
    expect(within(card).getByText("1 needs you")).toBeTruthy();
    const sidebar = screen.getByRole("navigation", { name: "Sessions" });
    expect(within(sidebar).getAllByRole("link").length).toBe(1);
    await waitFor(() => expect(within(card).getByText("go test")).toBeTruthy());
  });

  it("says why the turn is open, and settles with its last child", async () => {
    const container = await open();
    const why = () => container.querySelector("#why")?.textContent ?? "";
    await waitFor(() => expect(why()).toContain("Waiting for 2 agents."));
    expect(why()).toContain("Security needs your answer");
    daemon.commit("interaction.updated", interaction("q", "Security", "tSecurity", { status: "superseded" }));
    daemon.commit("turn.updated", turn("tSecurity", "Security", { rootTurnId: "T", phase: "settled", outcome: "completed" }));
    await waitFor(() => expect(why()).toContain("Waiting for 1 of 2 agents."));
    daemon.commit("turn.updated", turn("tTests", "Tests", { rootTurnId: "T", phase: "settled", outcome: "failed", error: { code: "x", message: "Out of tokens." } }));
    daemon.commit("turn.updated", turn("T", "R", { phase: "settled", outcome: "completed", settledAt: "2026-03-01T12:03:12Z" }));
    await waitFor(() => expect(why()).toBe("Completed after 3:12. Tests failed."));
    expect(screen.getByText("Out of tokens.")).toBeTruthy();
    expect(screen.queryByRole("button", { name: /^Stop/ })).toBeNull();
  });

  it("answers exactly the question of the lane, with the provider's own choice", async () => {
    await open();
    const question = screen.getByRole("region", { name: "Security asks: Run the fuzz test?" });
    fireEvent.click(within(question).getByRole("button", { name: "Run it" }));
    await waitFor(() => expect(within(question).getByText("Your answer is on its way…")).toBeTruthy());
    expect(given).toHaveLength(1);
    expect(given[0]).toMatchObject({ to: { agentSessionId: "Security", turnId: "tSecurity", requestId: "q" }, answer: { optionId: "yes" } });
  });

  it("opens the question again when its delivery failed, and says so", async () => {
    await open();
    daemon.commit("interaction.updated", interaction("q", "Security", "tSecurity", { title: "Run the fuzz test?", error: { code: "provider_gone", message: "The agent went away." } }));
    expect(await screen.findByText(/could not be delivered: The agent went away/)).toBeTruthy();
    expect(screen.getByRole("button", { name: "Run it" })).toBeTruthy();
  });

  it("shows an answer that came from elsewhere", async () => {
    await open();
    daemon.commit("interaction.updated", interaction("q", "Security", "tSecurity", { title: "Run the fuzz test?", status: "answered", answeredBy: "cli", response: { optionId: "no" } }));
    expect(await screen.findByText(/elsewhere, by cli/)).toBeTruthy();
    expect(screen.getByText("Do not run it")).toBeTruthy();
    await waitFor(() => expect(screen.queryByRole("button", { name: /needs you/ })).toBeNull());
  });

  it("keeps the text when it could not be sent, and sends it under the same id again", async () => {
    const ids: string[] = [];
    daemon.api.send = (_, __, id) => {
      ids.push(id);
      return Promise.reject(new Unreachable());
    };
    await open();
    const box = screen.getByPlaceholderText(/Guide the main agent/) as HTMLTextAreaElement;
    fireEvent.input(box, { target: { value: "look at the cart too" } });
    fireEvent.keyDown(box, { key: "Enter" });
    expect(await screen.findByText(/Not sent: The daemon cannot be reached/)).toBeTruthy();
    expect(box.value).toBe("look at the cart too");
    fireEvent.keyDown(box, { key: "Enter" });
    await waitFor(() => expect(ids).toHaveLength(2));
    expect(ids[0]).toBe(ids[1]);
    fireEvent.keyDown(box, { key: "Enter", shiftKey: true });
    expect(ids).toHaveLength(2);
  });

  it("says a stop that nobody confirmed as it is", async () => {
    await open();
    daemon.commit("operation.updated", operation("o", "Tests", "tTests", { status: "unconfirmed", targets: [{ agentSessionId: "Tests", turnId: "tTests", state: "interrupted" }] }));
    daemon.commit("turn.updated", turn("tTests", "Tests", { rootTurnId: "T", phase: "settled", outcome: "interrupted" }));
    expect(await screen.findByText("interrupted: it was asked to stop and did not confirm")).toBeTruthy();
    const stop = screen.getByRole("heading", { name: "Stop of “Tests”" }).parentElement!;
    expect(within(stop).getByText("asked; no confirmation came")).toBeTruthy();
    expect(within(stop).getByText("Result")).toBeTruthy();
    expect(within(stop).queryByText("So far")).toBeNull();
  });

  it("says an end that came after the stop as what it is", async () => {
    const container = await open();
    const targets = [{ agentSessionId: "R", turnId: "T", state: "interrupted" as const }];
    for (const id of ["Security", "Tests"]) daemon.commit("turn.updated", turn(`t${id}`, id, { rootTurnId: "T", phase: "settled", outcome: "interrupted", settledAt: at(60) }));
    daemon.commit("operation.updated", operation("o", "R", "T", { status: "unconfirmed", targets }));
    const change = { phase: "settled", outcome: "canceled", settledAt: at(60), providerTurn: { id: "p", phase: "ended", outcome: "completed" } } as const;
    daemon.commit("turn.updated", turn("T", "R", change));
    expect(await screen.findByText("completed later, after the turn had been stopped")).toBeTruthy();
    expect(container.querySelector("#why")?.textContent).toContain("Canceled after 1:00.");
    const main = container.querySelector(".timeline li")!;
    expect(main.textContent).toContain("1:00");
    expect(main.querySelector("rect")?.getAttribute("width")).toBe("100%");
  });

  it("draws the main agent's part to its end, which the turn outlasts", async () => {
    const container = await open();
    for (const id of ["Security", "Tests"]) daemon.commit("turn.updated", turn(`t${id}`, id, { rootTurnId: "T", phase: "settled", outcome: "completed", settledAt: at(60) }));
    const part = { id: "p", phase: "ended", outcome: "completed", endedAt: at(15) } as const;
    daemon.commit("turn.updated", turn("T", "R", { phase: "settled", outcome: "completed", settledAt: at(60), providerTurn: part }));
    await waitFor(() => expect(container.querySelector("#why")?.textContent).toContain("Completed after 1:00."));
    const main = container.querySelector(".timeline li")!;
    expect(main.textContent).toContain("Main, completed, 0:15");
    expect(main.querySelector("rect")?.getAttribute("width")).toBe("25%");
  });

  it("holds everything at the moment when the connection was lost, and goes on after it", async () => {
    const container = await open();
    const why = () => container.querySelector("#why")?.textContent ?? "";
    const clocks = () => [...container.querySelectorAll(".lane-meta, .tl-scale")].map((el) => el.textContent);
    daemon.cut();
    await waitFor(() => expect(why()).toMatch(/^Connection lost; as of \d\d:\d\d:\d\d: Waiting for 2 agents\./));
    expect(container.querySelector(".shell.lost")).toBeTruthy();
    const seen = clocks();
    await new Promise((resolve) => setTimeout(resolve, 2100));
    expect(clocks()).toEqual(seen);
    const button = (name: string) => screen.getByRole("button", { name }) as HTMLButtonElement;
    for (const name of ["Run it", "Stop all", "Send"]) expect(button(name).disabled, name).toBe(true);
    expect(screen.getByText("Answering needs the connection to the daemon.")).toBeTruthy();
    expect(screen.getByText(/Sending needs the connection to the daemon/)).toBeTruthy();
    daemon.refuses = false;
    model.sync.peek()!.wake();
    await waitFor(() => expect(why()).toMatch(/^Waiting for 2 agents\./));
    expect(button("Run it").disabled).toBe(false);
    await waitFor(() => expect(clocks()).not.toEqual(seen));
  });

  it("tells by its button whether the reasons are shown, and leads to them", async () => {
    await open();
    fireEvent.click(screen.getByRole("button", { name: "Hide why", expanded: true }));
    const closed = await screen.findByRole("button", { name: "Why?", expanded: false });
    fireEvent.click(closed);
    await waitFor(() => expect(document.activeElement?.id).toBe("panel"));
    fireEvent.keyDown(document.body, { key: "w" });
    expect(screen.queryByRole("complementary", { name: "This turn" })).toBeNull();
    await screen.findByRole("button", { name: "Why?" });
    fireEvent.keyDown(document.body, { key: "w" });
    await waitFor(() => expect(document.activeElement?.id).toBe("panel"));
  });

  it("says on an agent's page whom a message goes to", async () => {
    await open();
    navigate({ workspace: "ws", session: "R", child: "Tests" });
    expect(await screen.findByPlaceholderText("Message the main agent")).toBeTruthy();
  });

  it("goes from elsewhere to the question of a session that is not loaded yet", async () => {
    model = new Model(daemon.api, daemon.wire);
    navigate({ workspace: "ws" });
    daemon.state.putSession({ ...daemon.state.sessions.get("R")!, pendingInteractionCount: 1 }, daemon.seq);
    render(<App model={model} />);
    await model.start();
    fireEvent.click(await screen.findByRole("button", { name: "1 needs you" }));
    const question = await screen.findByRole("region", { name: "Security asks: Run the fuzz test?" });
    await waitFor(() => expect(document.activeElement).toBe(question));
    expect(model.sought.value).toBe(question.id);
    fireEvent.wheel(question);
    expect(model.sought.value).toBeUndefined();
  });

  it("goes to a question that came while its session was not loaded, and on to the next", async () => {
    model = new Model(daemon.api, daemon.wire);
    navigate({ workspace: "ws" });
    daemon.commit("interaction.updated", interaction("q", "Security", "tSecurity", { status: "superseded" }));
    daemon.commit("session.created", session("X", { title: "Another" }));
    daemon.commit("turn.created", turn("tX", "X", { providerTurn: { id: "p", phase: "running" } }));
    const { container } = render(<App model={model} />);
    await model.start();
    await screen.findByText("live");
    const pending = (id: string) => daemon.commit("session.updated", session(id, { pendingInteractionCount: 1 }));
    daemon.commit("interaction.created", interaction("s", "Tests", "tTests", { title: "Which database?" })); // of a child that is not here
    pending("R");
    daemon.commit("interaction.created", interaction("x", "X", "tX", { title: "Which branch?" }));
    pending("X");
    const chip = await screen.findByRole("button", { name: "2 need you" });
    const order: string[] = [];
    for (let i = 0; i < 2; i++) {
      fireEvent.click(chip);
      await waitFor(() => expect(document.activeElement?.classList.contains("question") && !order.includes(document.activeElement.id)).toBe(true));
      order.push(document.activeElement!.id);
    }
    expect([...order].sort()).toEqual(["q-tTests-s", "q-tX-x"]);
    fireEvent.click(chip); // and round again
    await waitFor(() => expect(document.activeElement?.id).toBe(order[0]));
    expect(container.querySelector(".absent")).toBeNull();
  });

  it("asks nobody any more in the live region once the question is answered", async () => {
    const container = await open();
    const live = container.querySelector("[aria-live=assertive]")!;
    await waitFor(() => expect(live.textContent).toContain("Security needs your answer"));
    daemon.commit("interaction.updated", interaction("q", "Security", "tSecurity", { status: "answered", answeredBy: "cli", response: { optionId: "no" } }));
    await waitFor(() => expect(live.textContent).toBe(""));
  });

  it("leads to the composer after a session was started", async () => {
    await open();
    daemon.commit("session.created", session("N", { title: "New one" }));
    daemon.api.createSession = () => Promise.resolve({ session: session("N", { title: "New one" }) });
    await model.createSession({ provider: "demo" }, "k");
    await waitFor(() => expect(document.activeElement?.id).toBe("composer"));
    expect(location.pathname).toContain("/s/N");
  });

  it("does nothing at w where there is no turn, and comes back from the reasons to the button", async () => {
    await open();
    const closer = screen.getByRole("button", { name: "Close the panel" });
    closer.focus();
    fireEvent.click(closer);
    await waitFor(() => expect(document.activeElement?.id).toBe("why-toggle"));
    navigate({ workspace: "ws" });
    await screen.findByRole("heading", { name: "What should be done?" });
    fireEvent.keyDown(document.body, { key: "w" });
    expect(model.panelOpen.value).toBe(false);
  });

  it("seeks a question no longer once the reader has gone elsewhere", async () => {
    await open();
    fireEvent.click(screen.getByRole("button", { name: "1 needs you" }));
    expect(model.sought.value).toBe("q-tSecurity-q");
    navigate({ workspace: "ws" });
    expect(model.sought.value).toBeUndefined();
    navigate({ workspace: "ws", session: "R" });
    await screen.findByRole("region", { name: "Security, needs you" });
    await new Promise((resolve) => setTimeout(resolve, 120));
    expect(document.activeElement?.className).not.toContain("question");
  });

  it("takes what is typed after the slash for a search, at once", async () => {
    await open();
    fireEvent.keyDown(document.body, { key: "/" });
    expect(document.activeElement?.id).toBe("search");
  });

  it("removes a session's row together with its page, and says that it is at it", async () => {
    await open();
    daemon.commit("session.created", session("X", { title: "Another" }));
    let done = () => {};
    daemon.api.deleteSession = () => new Promise<void>((resolve) => (done = resolve));
    model.dialog.value = "delete";
    fireEvent.click(await screen.findByRole("button", { name: "Delete" }));
    const busy = (await screen.findByRole("button", { name: "Deleting…" })) as HTMLButtonElement;
    expect(busy.disabled).toBe(true);
    done();
    const welcome = () => screen.queryByRole("heading", { name: "What should be done?" });
    await waitFor(() => expect(welcome()).toBeTruthy(), {
      onTimeout: (e) => e,
      interval: 1,
    });
    const rows = within(screen.getByRole("navigation", { name: "Sessions" })).getAllByRole("link");
    expect(rows.map((r) => r.getAttribute("data-session"))).toEqual(["X"]);
  });

  it("is as of the last thing heard where the line went dead without a word", async () => {
    await open();
    const heard = Date.now() - 34_000;
    Object.assign(model.sync.peek()!, { heardAt: heard });
    daemon.cut();
    await waitFor(() => expect(model.lostAt.value).toBe(heard));
  });

  it("folds what a provider says again and again, with the rest a click away", async () => {
    const container = await open();
    for (const n of [1, 2, 3]) daemon.commit("message.created", message(`n${n}`, "R", daemon.seq + 1, { role: "system", kind: "notice", content: `It tries again: ${n}/5` }));
    const more = await screen.findByRole("button", { name: /^3 times, last at \d\d:\d\d:\d\d$/, expanded: false });
    const lines = () => [...container.querySelectorAll(".feed .notice")].map((p) => p.textContent).filter((t) => t?.includes("tries again"));
    expect(lines()).toEqual([expect.stringMatching(/^It tries again: 3\/5 3 times/)]);
    fireEvent.click(more);
    await waitFor(() => expect(lines().length).toBe(3));
  });

  it("offers what each provider has, starts what was chosen, and remembers it", async () => {
    const card = (name: string, displayName: string, more: Partial<ProviderCard> = {}) => ({ name, displayName, found: true, version: "1", notes: [], scenarios: [], models: [], permissionModes: [], ...more }) as unknown as ProviderCard;
    daemon.api.providers = () =>
      Promise.resolve([
        card("demo", "Demo", { scenarios: [{ id: "plain", title: "A plain answer", description: "" }] }),
        card("codex", "Codex", { found: false, reason: "It is not installed." }),
        card("claude", "Claude Code", { models: ["opus", "sonnet"], permissionModes: ["default", "plan"] }),
      ]);
    await open();
    fireEvent.keyDown(document.body, { key: "n" });
    const dialog = within(await screen.findByRole("dialog", { name: "New session" }));
    expect((dialog.getByRole("radio", { name: /^Codex/ }) as HTMLInputElement).disabled).toBe(true);
    expect(dialog.getByText("It is not installed.")).toBeTruthy();
    expect(dialog.queryByLabelText("Permissions")).toBeNull();
    fireEvent.click(dialog.getByRole("radio", { name: /^Claude Code/ }));
    expect(dialog.queryByText("A plain answer")).toBeNull();
    fireEvent.change(await dialog.findByLabelText("Model"), { target: { value: "sonnet" } });
    fireEvent.change(dialog.getByLabelText("Permissions"), { target: { value: "plan" } });
    fireEvent.input(dialog.getByLabelText("Message"), { target: { value: "Do it" } });
    const create = vi.fn((_: string, body: NewSession) => Promise.resolve({ session: session("N", { ...body, title: "Do it" }) }));
    daemon.api.createSession = create as unknown as typeof daemon.api.createSession;
    fireEvent.click(dialog.getByRole("button", { name: "Start" }));
    await screen.findByRole("heading", { name: "Do it" });
    expect(create.mock.calls[0]![1]).toMatchObject({ provider: "claude", model: "sonnet", permissionMode: "plan" });
    expect(screen.getByTitle("Permissions of this session").textContent).toBe("plan");
    fireEvent.keyDown(document.body, { key: "n" });
    const again = within(await screen.findByRole("dialog", { name: "New session" }));
    expect((again.getByRole("radio", { name: /^Claude Code/ }) as HTMLInputElement).checked).toBe(true);
  });

  it("says of each session whose it is, once providers stand side by side", async () => {
    daemon.api.providers = () => Promise.resolve([{ name: "demo", displayName: "Demo" }, { name: "claude", displayName: "Claude Code" }] as ProviderCard[]);
    await open();
    const row = (id: string) => document.querySelector(`a.row[data-session="${id}"]`)?.textContent ?? "";
    expect(row("R")).not.toContain("Demo");
    daemon.commit("session.created", session("X", { title: "Another", provider: "claude" }));
    await waitFor(() => expect(row("X")).toContain("Claude Code"));
    expect(row("R")).toContain("Demo · waiting for 2 agents");
  });

  it("skips a message of a kind it does not know with a word about it", async () => {
    await open();
    daemon.commit("message.created", message("x", "R", daemon.seq + 1, { kind: "hologram" as "text" }));
    expect(await screen.findByText(/“hologram” entry that this view cannot show/)).toBeTruthy();
  });

  it("counts what needs a person in the title", async () => {
    await open();
    await waitFor(() => expect(document.title).toBe("(1) Review the change · Turnkeeper"));
    expect(screen.getByRole("button", { name: "1 needs you" })).toBeTruthy();
  });

  it("does not try again without a right to read", async () => {
    daemon.api.workspaces = () => Promise.reject(refusal(401, "unauthorized"));
    model = new Model(daemon.api, daemon.wire);
    render(<App model={model} />);
    await model.start();
    expect(await screen.findByText("turnkeeper open")).toBeTruthy();
  });
});

describe("the card of a provider", () => {
  it("shows two notes, and the rest when asked", () => {
    const card = { name: "codex", displayName: "Codex", found: true, version: "1", notes: ["One.", "Two.", "Three."], scenarios: [], models: [], permissionModes: [] } as unknown as ProviderCard;
    const picked = vi.fn();
    render(<ProviderPick providers={[card]} value="" onChange={picked} />);
    expect(screen.queryByText("Three.")).toBeNull();
    fireEvent.click(screen.getByRole("button", { name: "more about Codex" }));
    expect(screen.getByText("Three.")).toBeTruthy();
    expect(screen.getByRole("button", { name: "less about Codex", expanded: true })).toBeTruthy();
    expect(picked).not.toHaveBeenCalled();
  });
});
