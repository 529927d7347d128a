// Stopping: one agent, everything, and what nobody confirms.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "1.5" }, config: '[turns]\ncancel_bound = "4s"\n' }).start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

const open = (scenario) => b.follow(browser, daemon, ws, scenario);

test("one agent is stopped, the others and the turn go on", async () => {
  const { s, page, problems, context } = await open("three-reviewers");
  const tests = b.lane(page, "Test reviewer");
  await tests.waitFor();
  await tests.getByRole("button", { name: "Stop Test reviewer" }).click();
  await page.getByRole("region", { name: "Test reviewer, canceled" }).getByText("stopped, and it confirmed").waitFor();
  await b.counts(tests.getByRole("button", { name: /Stop/ }), 0);
  const panel = page.getByRole("complementary", { name: "This turn" });
  await panel.getByText("Stop of “Test reviewer”").waitFor();
  await panel.getByText("confirmed", { exact: true }).waitFor();

  const question = page.getByRole("region", { name: /Security reviewer asks/ });
  await question.getByRole("button", { name: "Do not run it" }).click();
  await b.says(b.why(page), /^Completed/, 40_000);
  assert.equal(await b.outcome(daemon, ws, s), "completed");
  assert.deepEqual(problems, []);
  await context.close();
});

test("everything is stopped, at every depth, and the questions with it", async () => {
  const { s, page, problems, context } = await open("three-reviewers");
  const question = page.getByRole("region", { name: /Security reviewer asks/ });
  await question.waitFor();
  await page.getByRole("button", { name: "Stop all" }).click();
  await b.says(b.why(page), /^Canceled after/);
  await question.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Security reviewer, canceled" }).waitFor();
  await page.getByRole("button", { name: "needs you" }).waitFor({ state: "detached" });
  assert.equal(await b.outcome(daemon, ws, s), "canceled");

  // What each confirmed is shown, also to a page that was not there when it happened.
  const panel = page.getByRole("complementary", { name: "This turn" });
  await panel.getByText("Stop of everything").waitFor();
  await page.reload();
  await panel.getByText("Stop of everything").waitFor();
  await panel.getByText("stopped, confirmed").first().waitFor();
  assert.deepEqual(problems, []);
  await context.close();
});

test("a stop that nobody answers is never called a success", async () => {
  const { s, page, problems, context } = await open("never-cancels");
  await b.lane(page, "Builder").waitFor();
  await page.getByRole("button", { name: "Stop all" }).click();
  await b.says(b.why(page), /^Stopping\. .*(answered|recorded|stopped).*in \d+ s at the latest the turn ends with what is known then/);
  await b.says(b.why(page), /^Canceled after.*did not confirm the stop/);
  await page.getByRole("region", { name: "Builder, interrupted" }).getByText("did not confirm").waitFor();
  const panel = page.getByRole("complementary", { name: "This turn" });
  await panel.getByText(/of 3 did not confirm/).waitFor();
  await b.counts(panel.getByText("working"), 0);
  assert.equal(await b.outcome(daemon, ws, s), "canceled");
  assert.deepEqual(problems, []);
  await context.close();
});

test("a stop that cannot be asked for says so, and the turn still shows as running", async () => {
  const { page, context } = await open("never-cancels");
  await b.lane(page, "Builder").waitFor();
  await page.route("**/cancel", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", body: '{"type":"urn:x","title":"x","status":500,"code":"internal","detail":"Something broke."}' }));
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByText("The stop could not be asked for: Something broke.").waitFor();
  await b.says(b.why(page), /working|Waiting for/);
  await page.unroute("**/cancel");
  await page.getByRole("button", { name: "Stop all" }).click();
  await b.says(b.why(page), /^Canceled/);
  await context.close();
});
