// @vitest-environment happy-dom
// @vitest-environment-options {"url": "http://localhost/"}
import { cleanup, fireEvent, render, screen, waitFor, within } from "@testing-library/preact";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Unreachable } from "../src/data/api";
import type { Answer, Interaction } from "../src/data/model";
import { FakeDaemon, refusal } from "./fake";
import { child, interaction, message, operation, session, turn } from "./fixtures";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener: () => undefined }));
vi.stubGlobal("IntersectionObserver", class { observe() {} disconnect() {} });
vi.stubGlobal("ResizeObserver", class { observe() {} disconnect() {} });

const { App } = await import("../src/views/app");
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
    expect(screen.getByText("ended, not confirmed")).toBeTruthy();
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
