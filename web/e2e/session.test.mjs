// The main job, as a newcomer meets it.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "1.5" } }).start();
  browser = await b.launch();
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

test("a first visit asks for a directory, and opens it", async () => {
  const { page, context, problems } = await b.signIn(browser, daemon);
  const field = page.getByLabel("Directory");
  const welcome = page.getByRole("heading", { name: "What should be done?" });
  await field.or(welcome).first().waitFor();
  if (await field.isVisible()) {
    await field.fill("relative/path");
    await page.getByRole("button", { name: "Open", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: /./ }).first().waitFor();
    await field.fill(daemon.home);
    await page.getByLabel("Name").fill("shop");
    await page.getByRole("button", { name: "Open", exact: true }).click();
  }
  await welcome.waitFor();
  assert.match(page.url(), /\/w\/ws_/);
  assert.deepEqual(problems, []);
  await context.close();
});

test("three reviewers: the root waits for its agents, a child asks, and the turn ends with the last of them", async () => {
  [ws] = (await daemon.call("GET", "/v1/workspaces")).items;
  const { page, context, problems } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws));
  await page.getByRole("heading", { name: "What should be done?" }).waitFor();
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog", { name: "New session" });
  await dialog.getByRole("radio", { name: /Three reviewers/ }).check();
  await dialog.getByRole("textbox", { name: "Message" }).fill("Review the session change.");
  await dialog.getByRole("button", { name: "Start" }).click();

  const card = page.getByRole("region", { name: "Delegated to 3 agents" });
  await card.waitFor();
  await b.lane(page, "Security reviewer").waitFor();
  const question = page.getByRole("region", { name: /Security reviewer asks: Run the token fuzz test/ });
  await question.waitFor();
  // The main agent has ended its own part; nothing says that the turn is done.
  await b.says(b.why(page), /Waiting for \d.*Security reviewer needs your answer/);
  await b.holds(async () => assert.match(await page.title(), /^\(1\)/));
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("region", { name: "Needs you" }).waitFor();
  await b.counts(page.getByRole("navigation", { name: "Sessions" }).locator("a.row"), 1); // children are not in the list
  await card.getByText("1 needs you").waitFor();

  // A lane opens to the child's own transcript, loaded then and not before.
  const asked = [];
  page.on("request", (r) => asked.push(r.url()));
  await page.getByRole("button", { name: /Test reviewer/ }).first().click();
  await page.getByRole("group", { name: "Transcript of Test reviewer" }).getByText("go test -race ./server/session").waitFor();
  assert.ok(asked.some((u) => /\/messages\?limit=80/.test(u)));

  // Reachable from the top, answered in the lane.
  await page.getByRole("button", { name: "1 needs you" }).click();
  await b.focused(question);
  await question.getByRole("button", { name: "Run it", exact: true }).click();
  await question.waitFor({ state: "detached" });

  await b.says(b.why(page), /^Completed after \d+:\d\d\. With 3 agents\.$/, 40_000);
  await card.getByText("3 completed").waitFor();
  await b.counts(page.getByRole("button", { name: /^Stop/ }), 0);
  await b.holds(async () => assert.doesNotMatch(await page.title(), /^\(/));
  await page.getByRole("navigation", { name: "Sessions" }).getByRole("region", { name: "Earlier" }).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("nested agents stand below the agent that started them", async () => {
  // While they work the third level stands below the second; that passes, so the page itself keeps watch.
  const watch = (page) =>
    page.addInitScript(() => {
      const nested = ["Planner, ", "Storage, ", "Migration check, "].map((name) => `.lane[aria-label^="${name}"]`).join(" ");
      new MutationObserver(() => (window.sawNested ||= document.querySelector(nested) !== null)).observe(document, { subtree: true, childList: true, attributes: true });
    });
  const { page, context, problems } = await b.follow(browser, daemon, ws, "nested", { before: watch });
  const planner = b.lane(page, "Planner");
  await page.waitForFunction(() => window.sawNested);
  await b.counts(page.locator(".lanes > .lane"), 1); // one lane at the top
  await b.says(b.why(page), /^Completed.*With 4 agents/, 40_000);

  // Ended, they fold away; opened, the planner's own card holds them.
  await planner.getByRole("button", { name: "2 agents of its own, all ended" }).click();
  await planner.getByRole("region", { name: "Delegated to 2 agents" }).waitFor();

  // Every child has an address of its own.
  await planner.getByRole("link", { name: "Open Storage" }).click();
  await page.getByRole("heading", { name: "Storage" }).waitFor();
  await page.reload();
  await page.getByRole("heading", { name: "Storage" }).waitFor();
  await page.getByRole("navigation", { name: "Where this agent belongs" }).getByRole("link", { name: "Planner" }).click();
  await page.getByRole("heading", { name: "Planner" }).waitFor();
  await page.keyboard.press("u");
  await page.getByRole("heading", { name: "nested" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Planner" }).waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("a child that fails is shown as it is, and the root completes all the same", async () => {
  const { page, context, problems } = await b.signIn(browser, daemon);
  const s = await b.begin(daemon, ws, "failing-child");
  await page.goto(b.address(daemon, ws, s.session));
  await b.says(b.why(page), /^Completed.*Benchmarks failed\.$/, 40_000);
  await page.getByRole("region", { name: "Benchmarks, failed" }).getByText("The model is overloaded.").first().waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("a continuation is waited for, not mistaken for the end", async () => {
  let lines;
  const { s, page, context } = await b.follow(browser, daemon, ws, "continuation", { before: async (page) => (lines = await b.recordLines(page)) });
  await b.says(b.why(page), /^Completed/, 40_000);
  const seen = await lines();
  assert.ok(seen.some((t) => /All agents have ended\. The main agent is expected to sum up/.test(t)), seen.join(" | "));
  assert.equal(seen.findIndex((t) => /^Completed/.test(t)), seen.length - 1, "it is completed once, and stays so");
  assert.equal(await b.outcome(daemon, ws, s), "completed");
  await context.close();
});

test("sessions are searched, renamed, pinned and deleted", async () => {
  const { page, context, problems } = await b.signIn(browser, daemon);
  const s = await b.begin(daemon, ws, "plain", "Look at the retry code");
  await page.goto(b.address(daemon, ws, s.session));
  await b.says(b.why(page), /^Completed/, 40_000);
  await page.keyboard.press("/");
  await page.keyboard.type("retry co"); // no letter of it is taken for a key
  const rows = page.getByRole("navigation", { name: "Sessions" }).locator("a.row");
  await b.counts(rows, 1);
  await page.keyboard.press("Escape");
  await rows.nth(1).waitFor();

  const first = page.getByRole("region", { name: "Earlier" }).locator("a.row").first();
  await b.says(first, /Look at the retry code/);
  const older = rows.filter({ hasText: "continuation" });
  await older.click();
  await page.getByRole("heading", { name: "continuation" }).waitFor();
  await page.getByRole("button", { name: "Session actions" }).click();
  await page.getByRole("button", { name: "Pin to the top" }).click();
  await b.says(first, /continuation/);
  await rows.filter({ hasText: "Look at the retry code" }).click();
  await page.getByRole("heading", { name: "Look at the retry code" }).waitFor();

  await page.getByRole("button", { name: "Session actions" }).click();
  await page.getByRole("button", { name: "Rename…" }).click();
  await page.getByLabel("Title").fill("Retry review");
  await page.getByRole("button", { name: "Rename", exact: true }).click();
  await page.getByRole("heading", { name: "Retry review" }).waitFor();

  await page.getByRole("button", { name: "Session actions" }).click();
  await page.getByRole("button", { name: "Delete…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { name: "What should be done?" }).waitFor();
  await rows.filter({ hasText: "Retry review" }).waitFor({ state: "detached" });
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByText("There is no such session here.").waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("without a cookie the page says what to do, and asks for nothing else", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const calls = [];
  page.on("request", (r) => calls.push(r.url()));
  await page.goto(`${daemon.url}/`);
  await page.getByText("turnkeeper open").first().waitFor();
  await b.quietly(page, 1500, () => assert.equal(calls.filter((u) => u.includes("/v1/")).length, 0));
  await context.close();
});
