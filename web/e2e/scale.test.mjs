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

test("ten thousand messages: a quick first sight, a bounded page, no holes while scrolling", { timeout: 120_000 }, async () => {
  const s = await b.begin(daemon, ws, "plain");
  await b.until(async () => (await b.outcome(daemon, ws, s)) === "completed");
  const { page, problems, context } = await b.signIn(browser, daemon);
  const all = Array.from({ length: 10_000 }, (_, i) => text(s, i, `Message ${i}\n\n- **one**\n- \`two\`\n\n${"some more words ".repeat(i % 30)}`, i % 9 ? "assistant" : "user"));
  await serveMessages(page, s.session, all);
  const began = Date.now();
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByText("Message 9999").waitFor();
  const first = Date.now() - began;
  assert.ok(first < 3000, `first sight after ${first} ms`);

  const rows = () => page.locator(".feed article").count();
  const visible = () => page.evaluate(() => {
    const view = document.querySelector(".scroll").getBoundingClientRect();
    return [...document.querySelectorAll(".feed article")]
      .filter((a) => a.getBoundingClientRect().bottom > view.top && a.getBoundingClientRect().top < view.bottom)
      .flatMap((a) => /Message (\d+)/.exec(a.textContent)?.[1] ?? []).map(Number);
  });
  const seen = new Set(await visible());
  let most = 0;
  for (let i = 0; i < 160; i++) {
    await page.evaluate(() => document.querySelector(".scroll").scrollBy(0, -320));
    await page.waitForTimeout(30);
    for (const n of await visible()) seen.add(n);
    if (i % 10 === 0) most = Math.max(most, await rows());
  }
  const numbers = [...seen].sort((x, y) => x - y);
  assert.ok(numbers[0] < 9900, `came up to ${numbers[0]}`);
  const holes = numbers.filter((n, i) => i > 0 && n !== numbers[i - 1] + 1);
  assert.deepEqual(holes, [], "every message on the way was seen");
  assert.ok(most <= 200, `${most} rows in the page`);

  await page.getByRole("button", { name: "Newest" }).click();
  await page.getByText("Message 9999").waitFor();
  assert.ok((await rows()) <= 200);
  const slow = await page.evaluate(async () => {
    const box = document.getElementById("composer");
    let worst = 0;
    for (let i = 0; i < 20; i++) {
      const t = performance.now();
      box.value += "x";
      box.dispatchEvent(new InputEvent("input", { bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      worst = Math.max(worst, performance.now() - t);
    }
    return worst;
  });
  assert.ok(slow < 150, `typing took up to ${slow} ms`);
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
  assert.equal(await page.getByText("the end").count(), 0);
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
    const box = await question.boundingBox();
    assert.ok(box.height < viewport.height, `the card is ${box.height} high`);
    await page.keyboard.press("a");
    for (const name of ["Run it", "Do not run it"]) {
      await question.getByRole("button", { name, exact: true }).scrollIntoViewIfNeeded();
      assert.ok(await question.getByRole("button", { name, exact: true }).isVisible());
    }
    const command = question.getByLabel("Command");
    assert.match(await command.textContent(), /# the last line$/);
    assert.ok((await command.boundingBox()).height < viewport.height / 2);
    await context.close();
  }
});
