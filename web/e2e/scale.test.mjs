// Long sessions, large messages, large questions. The daemon is real; what is large is
// put into its answers on their way.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

let daemon, browser, ws;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "4" } }).start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Answers a session's messages from a list of our own. */
async function serveMessages(page, session, all) {
  await page.route(`**/agent-sessions/${session}/messages?*`, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const below = all.filter((m) => m.seq < Number(query.get("before") ?? Infinity));
    const items = below.slice(-Number(query.get("limit")));
    return route.fulfill({ json: { items, hasBefore: items.length < below.length, hasAfter: false } });
  });
}

const text = (s, i, content, role = "assistant") => ({
  id: `m${i}`, agentSessionId: s.session, turnId: s.turn, seq: i + 1, role, kind: "text", content,
  status: "completed", createdAt: new Date(0).toISOString(), updatedAt: new Date(0).toISOString(),
});

/** Milliseconds until a session's newest message is seen. Only to compare with another on the same machine. */
async function firstSight(page, { session }, newest) {
  const began = Date.now();
  await page.goto(b.address(daemon, ws, session));
  await page.getByText(newest).waitFor();
  return Date.now() - began;
}

/** Milliseconds from a key to the next frame: the median, which a busy machine disturbs least. */
function typing(page) {
  return page.evaluate(async () => {
    const box = document.getElementById("composer");
    const took = [];
    for (let i = 0; i < 21; i++) {
      const t = performance.now();
      box.value += "x";
      box.dispatchEvent(new InputEvent("input", { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      took.push(performance.now() - t);
    }
    return took.sort((x, y) => x - y)[10];
  });
}

test("ten thousand messages: a quick first sight, a bounded page, no holes while scrolling", { timeout: 120_000 }, async () => {
  const s = await b.begin(daemon, ws, "plain");
  await b.until(async () => (await b.outcome(daemon, ws, s)) === "completed");
  const { page, problems, context } = await b.signIn(browser, daemon);
  const all = Array.from({ length: 10_000 }, (_, i) => text(s, i, `Message ${i}\n\n- **one**\n- \`two\`\n\n${"some more words ".repeat(i % 30)}`, i % 9 ? "assistant" : "user"));
  await serveMessages(page, s.session, all);
  const small = await b.begin(daemon, ws, "plain");
  await b.until(async () => (await b.outcome(daemon, ws, small)) === "completed");
  await serveMessages(page, small.session, all.slice(0, 20).map((m) => ({ ...m, agentSessionId: small.session, turnId: small.turn })));
  const usual = await firstSight(page, small, "Message 19");
  const usualKey = await typing(page);
  const first = await firstSight(page, s, "Message 9999");
  assert.ok(first < 3 * usual + 300, `first sight after ${first} ms, of a small session after ${usual} ms`);

  const rows = () => page.locator(".feed article").count();
  const visible = () => page.evaluate(() => {
    const view = document.querySelector(".scroll").getBoundingClientRect();
    return [...document.querySelectorAll(".feed article")]
      .filter((a) => a.getBoundingClientRect().bottom > view.top && a.getBoundingClientRect().top < view.bottom)
      .flatMap((a) => /Message (\d+)/.exec(a.textContent)?.[1] ?? []).map(Number);
  });
  const seen = new Set(await visible());
  let most = 0;
  const end = Date.now() + 60_000;
  for (let i = 0; Math.min(...seen) > 9750; i++) {
    assert.ok(Date.now() < end, `came up to ${Math.min(...seen)}`);
    await page.evaluate(() => {
      document.querySelector(".scroll").scrollBy(0, -320);
      return new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    });
    for (const n of await visible()) seen.add(n);
    if (i % 10 === 0) most = Math.max(most, await rows());
  }
  const numbers = [...seen].sort((x, y) => x - y);
  const holes = numbers.filter((n, i) => i > 0 && n !== numbers[i - 1] + 1);
  assert.deepEqual(holes, [], "every message on the way was seen");
  assert.ok(most <= 200, `${most} rows in the page`);

  await page.getByRole("button", { name: "Newest" }).click();
  await page.getByText("Message 9999").waitFor();
  await b.holds(async () => assert.ok((await rows()) <= 200));
  const key = await typing(page);
  assert.ok(key < 3 * usualKey + 30, `a key took ${key} ms, in a small session ${usualKey} ms`);
  assert.deepEqual(problems, []);
  await context.close();
});

test("a message of a megabyte is cut, and shown whole when asked", async () => {
  const s = await b.begin(daemon, ws, "plain");
  await b.until(async () => (await b.outcome(daemon, ws, s)) === "completed");
  const { page, context } = await b.signIn(browser, daemon);
  await serveMessages(page, s.session, [text(s, 1, "x".repeat(999_990) + " the end", "user")]);
  await page.goto(b.address(daemon, ws, s.session));
  const more = page.getByRole("button", { name: "Show all 1000 thousand characters" });
  await more.waitFor();
  await b.counts(page.getByText("the end"), 0);
  await more.click();
  await page.getByText("the end").waitFor();
  await context.close();
});

test("fifty kilobytes in a question leave its buttons in reach, on a phone too", async () => {
  const s = await b.begin(daemon, ws, "three-reviewers");
  for (const viewport of [{ width: 360, height: 640 }, { width: 1280, height: 800 }]) {
    const { page, context } = await b.signIn(browser, daemon, { viewport });
    await page.route("**/interactions*", async (route) => {
      const response = await route.fetch();
      const { items } = await response.json();
      for (const i of items) i.detail.command = "echo line\n".repeat(5000) + "# the last line";
      await route.fulfill({ json: { items } });
    });
    await b.until(async () => (await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${s.session}/interactions`)).items.length > 0);
    await page.goto(b.address(daemon, ws, s.session));
    const question = page.getByRole("region", { name: /Security reviewer asks/ });
    await question.waitFor();
    await b.holds(async () => {
      const { height } = await question.boundingBox();
      assert.ok(height < viewport.height, `the card is ${height} high`);
    });
    await page.keyboard.press("a");
    for (const name of ["Run it", "Do not run it"]) {
      await question.getByRole("button", { name, exact: true }).scrollIntoViewIfNeeded();
      await question.getByRole("button", { name, exact: true }).waitFor();
    }
    const command = question.getByLabel("Command");
    await b.says(command, /# the last line$/);
    await b.holds(async () => assert.ok((await command.boundingBox()).height < viewport.height / 2));
    await context.close();
  }
});
