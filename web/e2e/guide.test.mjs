// Writing while a turn runs.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "1.5" } }).start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

const has = (box, text) => b.holds(async () => assert.equal(await box.inputValue(), text));

test("a message joins the open turn; Enter sends, Shift+Enter does not; markup in it does no harm", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  await b.lane(page, "Style reviewer").waitFor();
  const box = page.locator("#composer");
  await page.getByPlaceholder("Guide the main agent; it decides what to pass on").waitFor();
  await box.fill("Also look at <img src=x onerror=\"document.title='owned'\"> and [this](javascript:document.title='owned')");
  await box.press("Shift+Enter");
  await page.keyboard.type("second line");
  await box.press("Enter");
  await page.locator(".you").filter({ hasText: "second line" }).waitFor();
  await has(box, ""); // given up once the daemon has it, which may be after it was shown

  // The demo answers with the text in it, as markdown. Only the whole of it proves anything.
  const noted = page.locator(".agent.completed").filter({ hasText: "Noted" });
  await noted.waitFor();
  await noted.getByText("weigh it when you read their findings").waitFor();
  await b.counts(page.locator(".feed img"), 0);
  await b.counts(noted.locator("a"), 0);
  assert.doesNotMatch(await page.title(), /owned/);

  const turns = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}/turns`);
  assert.equal(turns.items.length, 1, "guidance starts no second turn");
  assert.deepEqual(problems, []);
  await context.close();
});

test("text that cannot be sent stays, and is sent once when it can be", async () => {
  const s = await b.begin(daemon, ws, "plain");
  const { page, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  await b.says(b.why(page), /^Completed/, 40_000);
  const box = page.locator("#composer");
  await page.getByPlaceholder("Message the agent").waitFor();
  await box.fill("Please do");
  await page.route("**/messages", (route) => (route.request().method() === "POST" ? route.abort() : route.continue()));
  await box.press("Enter");
  await page.getByText("Not sent: The daemon cannot be reached. Your text is still here.").waitFor();
  await has(box, "Please do");
  await page.reload();
  await has(box, "Please do"); // kept beyond a reload
  await page.getByPlaceholder("Message the agent").waitFor();

  // The answer is lost on its way, though the daemon took the message: a second try must not double it.
  await page.unroute("**/messages");
  await page.route("**/messages", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await route.fetch();
    await route.abort();
  });
  await box.press("Enter");
  await page.getByText("Not sent:").waitFor();
  await page.unroute("**/messages");
  await box.press("Enter");
  await has(box, "");
  const { items } = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}/messages`);
  assert.equal(items.filter((m) => m.content === "Please do").length, 1);
  await context.close();
});
