// Several clients at once: two pages agree, and an answer from elsewhere is seen.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "2" } }).start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** What a page shows, without the clocks in it. */
const shown = async (page) => (await page.locator(".feed").first().innerText()).replace(/\d+:\d\d|\d+ [smh]\b/g, "#");

test("two pages agree, also one that came late, and the first answer wins", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  const one = await b.signIn(browser, daemon);
  await one.page.goto(b.address(daemon, ws, s.session));
  const ask = (page) => page.getByRole("region", { name: /Security reviewer asks/ });
  await ask(one.page).waitFor();
  const two = await b.signIn(browser, daemon);
  await two.page.goto(b.address(daemon, ws, s.session));
  await ask(two.page).waitFor(); // asked before this page came

  // Both answer; the second's answer is on its way for a while, and comes too late.
  let letGo;
  const held = new Promise((resolve) => (letGo = resolve));
  await two.page.route("**/response", (route) => held.then(() => route.continue()));
  const refused = two.page.waitForResponse(/\/response$/);
  await ask(two.page).getByRole("button", { name: "Do not run it" }).click();
  await ask(one.page).getByRole("button", { name: "Run it", exact: true }).click();
  await ask(one.page).waitFor({ state: "detached" });
  letGo();
  assert.equal((await refused).status(), 409);
  await ask(one.page).waitFor({ state: "detached" });
  await ask(two.page).waitFor({ state: "detached" });
  await b.says(b.why(one.page), /^Completed/, 40_000);
  await b.says(b.why(two.page), /^Completed/, 40_000);
  for (const { page } of [one, two]) await page.getByRole("button", { name: /Security reviewer/ }).first().click();
  for (const { page } of [one, two]) await page.getByText("The fuzz test finds no crash").first().waitFor();
  for (const { page } of [one, two]) await page.locator(".answered").filter({ hasText: "Run it" }).first().waitFor();
  await b.holds(async () => assert.equal(await shown(one.page), await shown(two.page)));

  // A third that was never there sees the same.
  const three = await b.signIn(browser, daemon);
  await three.page.goto(b.address(daemon, ws, s.session));
  await three.page.getByRole("button", { name: /Security reviewer/ }).first().click();
  await three.page.getByText("The fuzz test finds no crash").first().waitFor();
  await b.holds(async () => assert.equal(await shown(three.page), await shown(one.page)));
  assert.deepEqual([...one.problems, ...two.problems, ...three.problems], []);
  for (const { context } of [one, two, three]) await context.close();
});

test("an answer given on the command line closes the card here, and says where it came from", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  const card = page.getByRole("region", { name: /Security reviewer asks/ });
  await card.waitFor();
  const { items } = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}/interactions`);
  const i = items.find((x) => x.status === "pending");
  const deny = i.options.find((o) => o.role === "deny");
  await daemon.call("POST", `/v1/workspaces/${ws.id}/agent-sessions/${i.agentSessionId}/turns/${i.turnId}/interactions/${i.requestId}/response`, { optionId: deny.id }, "cli");
  await card.waitFor({ state: "detached" });
  await page.locator(".answered").filter({ hasText: "elsewhere, by cli" }).waitFor();
  await context.close();
  assert.deepEqual(problems, []);
});

test("fifty agents at once stay usable, and a session opens without their messages", async () => {
  const s = await b.begin(daemon, ws, "plain", "fifty");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByRole("region", { name: "Delegated to 50 agents" }).waitFor({ timeout: 60_000 });
  await b.says(b.why(page), /^Completed after .*With 50 agents/, 60_000);
  await page.reload();
  await page.getByRole("button", { name: /Show \d+ more that have ended/ }).waitFor();
  await b.holds(async () => assert.ok((await page.locator(".lane").count()) <= 16));
  await page.getByRole("button", { name: /Show \d+ more that have ended/ }).click();
  await b.counts(page.locator(".lane"), 50);
  const { items } = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions`);
  await b.counts(page.locator("nav a.row"), items.length); // fifty agents are one row in the list
  assert.deepEqual(problems, []);
  await context.close();
});
