// For everybody: assistive technology, the keyboard, a phone, little light, little motion.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let daemon, browser, ws, s;
before(async () => {
  daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "2" } }).start();
  browser = await b.launch();
  ws = await b.workspace(daemon);
  s = await b.begin(daemon, ws, "three-reviewers", "Review the session change on this branch.");
});
after(async () => {
  await browser?.close();
  await daemon?.stop();
});

/** Serious and critical findings, each with what it is about. */
async function findings(page) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations
    .filter((v) => v.impact === "serious" || v.impact === "critical")
    .map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" | ")}`);
}

for (const colorScheme of ["light", "dark"]) {
  test(`no serious accessibility issue in ${colorScheme}, and a picture of it`, async () => {
    const { page, problems, context } = await b.signIn(browser, daemon, { colorScheme, bypassCSP: true });
    await page.goto(b.address(daemon, ws, s.session));
    await page.getByRole("region", { name: /Security reviewer asks/ }).waitFor();
    await page.getByRole("button", { name: /Test reviewer/ }).first().click();
    await page.getByRole("group", { name: "Transcript of Test reviewer" }).waitFor();
    const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = Number(/\d+/.exec(background)?.[0]) > 128;
    assert.equal(light, colorScheme === "light", background);
    assert.deepEqual(await findings(page), []);
    await page.screenshot({ path: join(b.results, `${colorScheme}.png`) });

    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.getByRole("dialog", { name: "New session" }).waitFor();
    assert.deepEqual(await findings(page), []);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Turnkeeper" }).click();
    await page.getByRole("heading", { name: "What should be done?" }).waitFor();
    assert.deepEqual(await findings(page), []);
    assert.deepEqual(problems, []);
    await context.close();
  });
}

test("the theme can be chosen, and is kept", async () => {
  const { page, context } = await b.signIn(browser, daemon, { colorScheme: "light" });
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByRole("button", { name: "Theme" }).click();
  await page.getByRole("button", { name: "Dark" }).click();
  await page.reload();
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  await context.close();
});

test("the keyboard reaches everything: sessions, the question, its answer, the box", async () => {
  const other = await b.begin(daemon, ws, "plain", "A second session");
  const { page, problems, context } = await b.signIn(browser, daemon);
  await page.goto(b.address(daemon, ws));
  await page.getByRole("heading", { name: "What should be done?" }).waitFor();
  await page.locator("a.row").nth(1).waitFor(); // there is nothing to go to before
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Review the session change on this branch." }).waitFor(); // needs you: first
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "A second session" }).waitFor();
  assert.ok(page.url().includes(other.session));
  await page.keyboard.press("a");
  const question = page.getByRole("region", { name: /Security reviewer asks/ });
  await question.waitFor();
  await b.focused(question);
  await page.keyboard.press("Tab"); // the command, which scrolls
  await page.keyboard.press("Tab");
  await b.focused(question.getByRole("button", { name: "Run it", exact: true }));
  await page.keyboard.press("c");
  await b.focused(page.locator("#composer"));
  await page.keyboard.type("jjj");
  assert.ok(page.url().includes(s.session), "letters typed into the box are letters");
  await page.locator("#composer").fill("");
  await page.keyboard.press("Escape");
  await page.keyboard.press("w"); // goes into the panel that is shown already
  await b.focused(page.locator("#panel"));
  await page.keyboard.press("w");
  await page.getByRole("complementary", { name: "This turn" }).waitFor({ state: "detached" });
  assert.deepEqual(problems, []);
  await context.close();
});

test("changes are announced once, streaming text never", async () => {
  const listen = (page) =>
    page.addInitScript(() => {
      window.spoken = [];
      const heard = new Map();
      new MutationObserver(() => {
        for (const region of document.querySelectorAll("[aria-live]")) {
          const text = region.textContent;
          if (text && text !== heard.get(region)) window.spoken.push(text);
          heard.set(region, text);
        }
      }).observe(document, { childList: true, characterData: true, subtree: true });
    });
  const { page, context } = await b.follow(browser, daemon, ws, "plain", { text: "Announce it", before: listen });
  await b.says(b.why(page), /^Completed/, 40_000);
  await page.waitForFunction(() => window.spoken.includes("Turn completed"));
  const spoken = await page.evaluate(() => window.spoken);
  assert.equal(spoken.filter((x) => x === "Turn completed").length, 1);
  await b.counts(page.locator(".feed [aria-live]"), 0);
  assert.ok(spoken.length < 6, spoken.join(" | "));
  await context.close();
});

/** The question is gone to, and stays in sight while the rest of the transcript is drawn. */
async function inSight(page, question) {
  await b.focused(question);
  const seen = async () => {
    const box = await question.boundingBox();
    const { top, bottom } = await page.locator(".scroll").evaluate((el) => el.getBoundingClientRect());
    assert.ok(box && box.y >= top - box.height / 2 && box.y + box.height / 2 <= bottom, `${JSON.stringify(box)} in ${top}..${bottom}`);
  };
  await b.holds(seen);
  await b.quietly(page, 800, seen); // what is drawn late does not push it out
}

test("from a page that has loaded nothing the chip leads to the question", async () => {
  const { page, context } = await b.signIn(browser, daemon, { viewport: { width: 1280, height: 520 } });
  await page.goto(b.address(daemon, ws));
  await page.getByRole("button", { name: "1 needs you" }).click();
  await inSight(page, page.getByRole("region", { name: /Security reviewer asks/ }));
  await context.close();
});

test("on a phone everything is in reach", async () => {
  const { page, problems, context } = await b.signIn(browser, daemon, { viewport: { width: 360, height: 640 }, hasTouch: true, isMobile: true, bypassCSP: true });
  await page.goto(b.address(daemon, ws, s.session));
  const question = page.getByRole("region", { name: /Security reviewer asks/ });
  await question.waitFor();
  await page.getByRole("button", { name: "Answer", exact: true }).tap(); // in the line, also here
  await inSight(page, question);
  await page.getByRole("link", { name: "Turnkeeper", exact: true }).tap();
  await page.getByRole("heading", { name: "What should be done?" }).waitFor();
  await page.getByRole("button", { name: "1 needs you" }).tap();
  await inSight(page, question);
  for (const name of ["Run it", "Do not run it"]) {
    const button = question.getByRole("button", { name, exact: true });
    await button.scrollIntoViewIfNeeded();
    await b.holds(async () => {
      const box = await button.boundingBox();
      assert.ok(box && box.height >= 34 && box.x >= 0 && box.x + box.width <= 360, `${name}: ${JSON.stringify(box)}`);
    });
  }
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `the page is ${wide} wide`);
  await page.screenshot({ path: join(b.results, "phone.png") });

  await page.getByRole("button", { name: "Sessions", exact: true }).tap();
  const sidebar = page.getByRole("navigation", { name: "Sessions" });
  await sidebar.getByText("Needs you").waitFor();
  assert.deepEqual(await findings(page), []);
  await sidebar.locator("a.row.on").tap();
  await page.getByRole("button", { name: "Why?" }).tap();
  const panel = page.getByRole("complementary", { name: "This turn" });
  await panel.getByText("Why it is still open").waitFor();
  await panel.getByRole("button", { name: "Close the panel" }).tap();
  await panel.waitFor({ state: "detached" });

  await b.lane(page, "Security reviewer").getByRole("link", { name: "Open Security reviewer" }).tap();
  await page.getByRole("heading", { name: "Security reviewer" }).waitFor();
  assert.deepEqual(await findings(page), []);
  await question.getByRole("button", { name: "Do not run it" }).tap();
  await b.says(b.why(page), /^Completed/, 40_000);
  assert.deepEqual(problems, []);
  await context.close();
});

test("with reduced motion nothing turns", async () => {
  const t = await b.begin(daemon, ws, "never-cancels"); // works for longer than this test
  const { page, context } = await b.signIn(browser, daemon, { reducedMotion: "reduce" });
  await page.goto(b.address(daemon, ws, t.session));
  // In one step: a ring that is drawn anew in between would have no style.
  await page.waitForFunction(() => {
    const ring = document.querySelector(".glyph .ring");
    return ring !== null && getComputedStyle(ring).animationName === "none";
  });
  await context.close();
});
