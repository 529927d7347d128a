// What goes wrong around a page: the daemon dies, the socket drops, the line goes dead.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon().start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** A page whose socket can be cut and held down. */
async function wired(url) {
  const opened = await b.signIn(browser, daemon);
  const line = { cuts: 0, down: false, sockets: new Set(), cut() {
    for (const s of line.sockets) void s.close({ code: 1001 });
    line.sockets.clear();
    line.cuts++;
  } };
  await opened.page.routeWebSocket(/\/events\/stream/, (socket) => {
    if (line.down) return void socket.close({ code: 1001 });
    const server = socket.connectToServer();
    line.sockets.add(socket);
    line.quiet = false;
    server.onMessage((m) => line.quiet || socket.send(m));
  });
  await opened.page.goto(url);
  return { ...opened, line };
}

const feed = (page) => page.locator(".feed").first().innerText();

test("killed in mid turn and started again, the page recovers by itself and says nothing that is not so", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByRole("region", { name: /Security reviewer asks/ }).waitFor();
  await page.evaluate(() => (window.sameDocument = true));
  await daemon.kill();
  await page.getByText("reconnecting", { exact: true }).waitFor();
  assert.match((await b.why(page).textContent()) ?? "", /Waiting for/, "the last known state stays in sight");
  await daemon.start();
  await page.getByText("live", { exact: true }).waitFor({ timeout: 30_000 });
  const text = await b.says(b.why(page), /^(Interrupted|Completed) after/);
  await page.getByRole("region", { name: "Security reviewer, interrupted" }).waitFor();
  assert.equal(await page.getByRole("region", { name: /, (working|needs you)$/ }).count(), 0);
  assert.equal(await page.getByRole("region", { name: /asks/ }).count(), 0, "no dead question");
  assert.equal(text.toLowerCase().startsWith(await b.outcome(daemon, ws, s)), true);
  assert.equal(await page.evaluate(() => window.sameDocument), true, "no reload");

  // And work goes on from there.
  const box = page.getByPlaceholder("Message the agent");
  await box.fill("plain");
  await box.press("Enter");
  await b.says(b.why(page), /The main agent is working|Sent\./);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a socket that drops again and again loses and doubles nothing", async () => {
  const s = await b.begin(daemon, ws, "nested");
  const { page, line, context } = await wired(b.address(daemon, ws, s.session));
  await b.lane(page, "Planner").waitFor();
  while (!/^Completed/.test((await b.why(page).textContent()) ?? "")) {
    line.cut();
    await page.waitForTimeout(700);
    assert.ok(line.cuts < 80, "the turn never ended for this page");
  }
  const { page: fresh, context: other } = await b.signIn(browser, daemon);
  await fresh.goto(b.address(daemon, ws, s.session));
  await b.says(b.why(fresh), /^Completed/);
  await fresh.locator(".turn-end").waitFor();
  await b.says(fresh.locator(".lane-last").first(), /one new file/); // asked for apart
  assert.equal(await feed(page), await feed(fresh));
  assert.ok(line.cuts > 3);
  await context.close();
  await other.close();
});

test("a line that is dead without a word is noticed and replaced", { timeout: 90_000 }, async () => {
  const s = await b.begin(daemon, ws, "root-first");
  const { page, line, context } = await wired(b.address(daemon, ws, s.session));
  await b.lane(page, "Full test run").waitFor();
  line.quiet = true;
  await b.says(b.why(page), /^Completed/, 60_000);
  await context.close();
});

test("while nobody answers, the page says so and goes on when somebody does", async () => {
  const s = await b.begin(daemon, ws, "root-first");
  const { page, line, context } = await wired(b.address(daemon, ws, s.session));
  await b.lane(page, "Full test run").waitFor();
  line.down = true;
  line.cut();
  await page.getByText("reconnecting", { exact: true }).waitFor();
  await page.waitForTimeout(1000);
  line.down = false;
  await page.getByText("live", { exact: true }).waitFor();
  await b.says(b.why(page), /^Completed/, 40_000);
  await context.close();
});
