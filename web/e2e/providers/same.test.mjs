// The same tests with each of the real programs, and with both at once. Their models are
// scripted and held at gates: what races is brought about and not waited for.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as b from "../browser.mjs";
import { Models } from "./models.mjs";

let models, daemon, browser, ws;
before(async () => {
  models = await new Models().start();
  daemon = await models.daemon().start();
  browser = await b.launch();
  ws = await daemon.call("POST", "/v1/workspaces", { name: "shop", path: models.work });
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
  const problems = models?.url ? await models.problems() : [];
  await models?.stop();
  assert.deepEqual(problems, []);
});

const providers = [
  { name: "codex", shown: "Codex" },
  { name: "claude", shown: "Claude Code" },
];

for (const provider of providers) {
  describe(provider.shown, () => {
    const open = (gate) => models.open(provider.name, gate);
    const held = (gate) => models.held(provider.name, gate);

    test("two agents work in lanes; one asks in its own; the turn ends with the last of them", async () => {
      const { page, problems, context } = await signedIn();
      const s = await startSession(page, provider, "lanes");
      await held("lanes-b");
      const card = page.getByRole("region", { name: "Delegated to 2 agents" });
      await b.counts(card.locator(".lanes > .lane"), 2);

      // The main agent has said its part and ended it; nothing says that the turn is done.
      await page.getByText("They are at work.").waitFor();
      await b.says(b.why(page), /^Waiting for 2 agents\..* needs your answer/);
      await b.counts(page.getByRole("button", { name: "Stop all" }), 1);

      // The question stands in the lane of the agent that asks, and is answered there.
      const name = await titleOf(s, "lanes-a");
      const lane = b.lane(page, name);
      const question = page.locator(".question");
      await b.says(lane.locator(".question").getByLabel("Command"), /touch allowed/);
      await b.counts(question, 1);
      await page.getByRole("button", { name: "1 needs you" }).click();
      await b.focused(question);
      await question.locator("button.primary").click();
      await question.waitFor({ state: "detached" });
      await page.getByRole("region", { name: `${name}, completed` }).waitFor();
      await lane.getByRole("button", { expanded: false }).first().click();
      await page.getByRole("group", { name: `Transcript of ${name}` }).getByText("I was allowed to.").waitFor();
      await b.says(b.why(page), /Waiting for 1 of 2 agents/);

      await open("lanes-b");
      await b.says(b.why(page), /^Completed .*With 2 agents\.$/);
      await card.getByText("2 completed").waitFor();
      await b.counts(page.getByRole("button", { name: /^Stop/ }), 0);
      assert.deepEqual(problems, []);
      await context.close();
    });

    test("one agent is stopped and confirms it; the other and the turn go on", async () => {
      const { page, problems, context } = await signedIn();
      const s = await startSession(page, provider, "stop-one");
      await held("stop-one-a");
      await held("stop-one-b");
      const card = page.getByRole("region", { name: "Delegated to 2 agents" });
      await b.says(b.why(page), /^Waiting for 2 agents/);
      const name = await titleOf(s, "stop-one-a");
      await card.getByRole("button", { name: `Stop ${name}` }).click();
      await page.getByRole("region", { name: `${name}, canceled` }).getByText("stopped, and it confirmed").waitFor();
      await models.left(provider.name, "stop-one-a"); // its program has given it up
      await page.getByRole("complementary", { name: "This turn" }).getByText(`Stop of “${name}”`).waitFor();
      await b.says(b.why(page), /Waiting for 1 of 2 agents/);

      await open("stop-one-b");
      await b.says(b.why(page), /^Completed/);
      assert.equal(await b.outcome(daemon, ws, s), "completed");
      assert.deepEqual(problems, []);
      await context.close();
    });

    test("everything is stopped, the open question with it, and the session can be gone on with", async () => {
      const { page, problems, context } = await signedIn();
      const s = await startSession(page, provider, "stop-all");
      await held("stop-all-a");
      const question = page.locator(".question");
      await question.waitFor();
      await b.says(b.why(page), /^Waiting for 2 agents/);
      await page.getByRole("button", { name: "Stop all" }).click();
      await b.says(b.why(page), /^Canceled/);
      await question.waitFor({ state: "detached" });
      await page.getByRole("region", { name: "Delegated to 2 agents" }).getByText("2 canceled").waitFor();
      const panel = page.getByRole("complementary", { name: "This turn" });
      await panel.getByText("Stop of everything").waitFor();
      await panel.getByText("stopped, confirmed").first().waitFor();
      await models.left(provider.name, "stop-all-a");
      assert.equal(await b.outcome(daemon, ws, s), "canceled");

      await page.getByPlaceholder("Message the agent").fill("Are you there?");
      await page.locator("#composer").press("Enter");
      await page.getByText("Here I am.").waitFor();
      await b.says(b.why(page), /^Completed/);
      assert.deepEqual(problems, []);
      await context.close();
    });

    test("a message while only an agent runs joins the turn: the main agent begins at once", async () => {
      const { page, problems, context } = await signedIn();
      const s = await startSession(page, provider, "guide");
      await held("guide-a");
      await b.says(b.why(page), /^Waiting for 1 agent\./);
      await page.getByPlaceholder("Guide the main agent; it decides what to pass on").fill("Look at the retries too");
      await page.locator("#composer").press("Enter");
      await held("guide");
      await page.locator(".you").filter({ hasText: "Look at the retries too" }).waitFor();
      await b.says(b.why(page), /^The main agent and 1 agent are working/);
      await open("guide");
      await page.getByText("Noted.").waitFor();
      await b.says(b.why(page), /^Waiting for 1 agent\./);
      await open("guide-a");
      await b.says(b.why(page), /^Completed.*With 1 agent\.$/);
      const turns = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}/turns`);
      assert.equal(turns.items.length, 1, "guidance starts no second turn");
      assert.deepEqual(problems, []);
      await context.close();
    });
  });
}

test("sessions of both stand side by side: each row says whose it is, and each question is found", async () => {
  const { page, problems, context } = await signedIn();
  const made = {};
  for (const provider of providers) {
    made[provider.name] = await startSession(page, provider, "side");
    await page.locator(".question").waitFor();
  }
  const list = page.getByRole("navigation", { name: "Sessions" });
  const needs = list.getByRole("region", { name: "Needs you" });
  await b.counts(needs.locator("a.row"), 2);
  for (const provider of providers) {
    await b.says(row(page, made[provider.name]), new RegExp(provider.shown));
  }

  // From no session to the one question and on to the other.
  await page.goto(b.address(daemon, ws));
  const seen = [];
  for (const _ of providers) {
    await page.getByRole("button", { name: "2 need you" }).click();
    await b.holds(async () => assert.ok(!seen.includes((await shownSession(page)) ?? seen[0])));
    await b.focused(page.locator(".question"));
    const shown = await shownSession(page);
    await b.says(page.locator(".head-facts"), new RegExp(`^${providers.find((p) => made[p.name].session === shown).shown}`));
    seen.push(shown);
  }

  // The answer goes to the one that asked, and to nobody else.
  for (const provider of providers) {
    const s = made[provider.name];
    await row(page, s).click();
    await b.holds(async () => assert.equal(await shownSession(page), s.session));
    await page.locator(".question button.primary").click();
    await b.says(b.why(page), /^Completed.*With 1 agent\.$/);
  }
  await b.counts(needs, 0);
  assert.deepEqual(problems, []);
  await context.close();
});

/** A page of the workspace that follows it. */
async function signedIn() {
  const opened = await b.signIn(browser, daemon);
  await opened.page.goto(b.address(daemon, ws));
  await opened.page.getByText("live", { exact: true }).waitFor();
  return opened;
}

/** Starts a session as a person does, and returns its ids. */
async function startSession(page, provider, scenario) {
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("button", { name: /New session/ }).click();
  const dialog = page.getByRole("dialog", { name: "New session" });
  const before = await shownSession(page);
  await dialog.getByRole("radio", { name: new RegExp(`^${provider.shown}`) }).check();
  await dialog.getByRole("textbox", { name: "Message" }).fill(`Look at it with two agents. <<${scenario}>>`);
  await dialog.getByRole("button", { name: "Start" }).click();
  await dialog.waitFor({ state: "detached" });
  await b.holds(async () => assert.notEqual((await shownSession(page)) ?? before, before));
  const session = await shownSession(page);
  const { items } = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${session}/turns`);
  return { session, turn: items[0].id };
}

const shownSession = async (page) => page.url().match(/\/s\/([\w-]+)/)?.[1];
const row = (page, s) => page.locator(`a.row[data-session="${s.session}"]`);

/** The title of the agent that is so called in the script, where its launching call is named after it. */
function titleOf(s, agent) {
  return b.holds(async () => {
    const { childSessions } = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}`);
    const child = childSessions.find((c) => c.parentToolCallId?.endsWith(`_${agent}`));
    assert.ok(child?.title, `no child was launched as ${agent}`);
    return child.title;
  });
}
