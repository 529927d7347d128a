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

/** A page that follows a new session, whose socket can be cut and held down. */
async function wired(scenario) {
  const line = { cuts: 0, every: Infinity, down: false, sockets: new Set(), cut() {
    for (const s of line.sockets) void s.close({ code: 1001 });
    line.sockets.clear();
    line.cuts++;
  } };
  const wire = (page) => page.routeWebSocket(/\/events\/stream/, (socket) => {
    if (line.down) return void socket.close({ code: 1001 });
    const server = socket.connectToServer();
    line.sockets.add(socket);
    line.quiet = false;
    let passed = 0;
    server.onMessage((m) => {
      if (line.quiet || !line.sockets.has(socket)) return;
      socket.send(m);
      if (++passed >= line.every) line.cut();
    });
  });
  return { ...(await b.follow(browser, daemon, ws, scenario, { before: wire })), line };
}

const feed = (page) => page.locator(".feed").first().innerText();

test("killed in mid turn and started again, the page recovers by itself and says nothing that is not so", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByRole("region", { name: /Security reviewer asks/ }).waitFor();
  await b.says(b.why(page), /^Waiting for/);
  await page.evaluate(() => (window.sameDocument = true));
  await daemon.kill();
  await page.getByText("reconnecting", { exact: true }).waitFor();
  await b.says(b.why(page), /^Connection lost; as of \d\d:\d\d:\d\d: .*Waiting for/); // the last known state stays in sight
  const clocks = () => page.locator(".lane-meta, .tl-scale").allTextContents();
  const seen = await clocks();
  const turning = (rings) => rings.filter((el) => getComputedStyle(el).animationName !== "none").length;
  await b.holds(async () => assert.equal(await page.locator(".glyph .ring").evaluateAll(turning), 0));
  await b.holds(async () => assert.ok(await page.getByRole("button", { name: "Run it", exact: true }).isDisabled()));
  await page.getByText("Answering needs the connection to the daemon.").waitFor();
  await b.quietly(page, 2200, async () => assert.deepEqual(await clocks(), seen, "no clock runs on"));
  await daemon.start();
  await page.getByText("live", { exact: true }).waitFor({ timeout: 30_000 });
  const text = await b.says(b.why(page), /^(Interrupted|Completed) after/);
  await page.getByRole("region", { name: "Security reviewer, interrupted" }).waitFor();
  await b.counts(page.getByRole("region", { name: /, (working|needs you)$/ }), 0);
  await b.counts(page.getByRole("region", { name: /asks/ }), 0); // no dead question
  assert.equal(text.toLowerCase().startsWith(await b.outcome(daemon, ws, s)), true);
  assert.equal(await page.evaluate(() => window.sameDocument), true, "no reload");

  // And work goes on from there.
  const box = page.getByPlaceholder("Message the agent");
  await box.fill("plain");
  await box.press("Enter");
  await b.says(b.why(page), /^(The main agent is working|Sent|Completed)/);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a socket that drops again and again loses and doubles nothing", async () => {
  const { s, page, line, context } = await wired("nested");
  line.every = 12; // frames a connection: enough to get on, too few to see a turn through
  line.cut();
  await b.says(b.why(page), /^Completed/, 90_000);
  const { page: fresh, context: other } = await b.signIn(browser, daemon);
  await fresh.goto(b.address(daemon, ws, s.session));
  await b.says(b.why(fresh), /^Completed/);
  await fresh.locator(".turn-end").waitFor();
  await b.says(fresh.locator(".lane-last").first(), /Both parts can move\./); // asked for apart
  await b.holds(async () => assert.equal(await feed(page), await feed(fresh)));
  assert.ok(line.cuts > 3, `${line.cuts} cuts`);
  await context.close();
  await other.close();
});

test("a line that is dead without a word is noticed and replaced", { timeout: 90_000 }, async () => {
  const { page, line, context } = await wired("root-first");
  await b.lane(page, "Full test run").waitFor();
  line.quiet = true;
  await b.says(b.why(page), /^Completed/, 60_000);
  await context.close();
});

test("while nobody answers, the page says so and goes on when somebody does", async () => {
  const { page, line, context } = await wired("root-first");
  await b.lane(page, "Full test run").waitFor();
  line.down = true;
  line.cut();
  await page.getByText("reconnecting", { exact: true }).waitFor();
  await b.says(b.why(page), /^Connection lost; as of/);
  line.down = false;
  await page.getByText("live", { exact: true }).waitFor();
  await b.says(b.why(page), /^Completed/, 40_000);
  await context.close();
});
