// A real Chromium, and the steps that the tests share.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";

const known = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/usr/bin/google-chrome-stable", "/snap/bin/chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"];
const flags = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

export const results = fileURLToPath(new URL("../test-results/", import.meta.url));

export async function launch() {
  const executablePath = process.env.TURNKEEPER_CHROMIUM || known.find((path) => existsSync(path));
  if (!executablePath) throw new Error("no Chromium or Chrome was found; install one, or set TURNKEEPER_CHROMIUM to its path");
  mkdirSync(results, { recursive: true });
  return chromium.launch({ executablePath, args: flags });
}

/** How much slower than this machine a page is to run: with 4 or more, a test that does not wait for what it means to see is found out. */
const slower = Number(process.env.TURNKEEPER_E2E_SLOWER ?? 1);

/** A page that is signed in. What it logs as an error, and what it may not load, fails the test that asks `clean`. */
export async function signIn(browser, daemon, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000 * Math.max(1, slower / 2));
  if (slower > 1) await (await context.newCDPSession(page)).send("Emulation.setCPUThrottlingRate", { rate: slower });
  const problems = [];
  page.on("pageerror", (error) => problems.push(String(error.stack ?? error)));
  page.on("console", (m) => {
    // A refused call or a cut socket is logged by the browser itself; tests of those cause them.
    if (m.type() === "error" && !/Failed to load resource|WebSocket connection/.test(m.text())) problems.push(m.text());
  });
  await page.goto(await daemon.loginURL());
  return { context, page, problems };
}

export async function workspace(daemon, name = "shop") {
  return daemon.call("POST", "/v1/workspaces", { name, path: daemon.home });
}

/** Starts a session from another client, and returns its ids. */
export async function begin(daemon, ws, scenario, text = scenario) {
  const made = await daemon.call("POST", `/v1/workspaces/${ws.id}/agent-sessions`, {
    provider: "demo",
    scenario,
    message: { content: [{ type: "text", text }] },
  });
  return { session: made.session.id, turn: made.turn.id };
}

/**
 * A page that follows the workspace before the session begins, so that it sees everything
 * of it, however slow it is. `before` is called with the page first.
 */
export async function follow(browser, daemon, ws, scenario, { text = scenario, options, before } = {}) {
  const opened = await signIn(browser, daemon, options);
  await before?.(opened.page);
  await opened.page.goto(address(daemon, ws));
  await opened.page.getByText("live", { exact: true }).waitFor();
  const s = await begin(daemon, ws, scenario, text);
  await opened.page.locator(`a.row[data-session="${s.session}"]`).click();
  await why(opened.page).waitFor();
  return { s, ...opened };
}

/** Keeps every text that the line above the composer has shown, also those that pass quickly. */
export async function recordLines(page) {
  await page.addInitScript(() => {
    window.lines = [];
    new MutationObserver(() => {
      const text = document.querySelector("#why")?.textContent;
      if (text && text !== window.lines.at(-1)) window.lines.push(text);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  });
  return () => page.evaluate(() => window.lines);
}

export const address = (daemon, ws, ...ids) => `${daemon.url}/w/${ws.id}${ids.length ? `/s/${ids.join("/")}` : ""}`;
export const lane = (page, name) => page.getByRole("region", { name: new RegExp(`^${name}, `) });
export const why = (page) => page.locator("#why");

/** Waits until the text of a locator matches. */
export async function says(locator, pattern, timeout = 30_000) {
  const end = Date.now() + timeout;
  let text = "";
  while (Date.now() < end) {
    text = (await locator.textContent({ timeout: 1000 }).catch(() => null)) ?? text;
    if (pattern.test(text)) return text;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`expected ${pattern}, last seen: ${text}`);
}

/** How the daemon itself says that a turn stands. */
export async function outcome(daemon, ws, { session, turn }) {
  const t = await daemon.call("GET", `/v1/workspaces/${ws.id}/agent-sessions/${session}/turns/${turn}`);
  return t.outcome ?? t.phase;
}

/**
 * Waits until what is claimed holds. What a page shows comes by the stream and is drawn
 * a frame later: no claim about it can be made once and for all.
 */
export async function holds(claim, timeout = 20_000) {
  const end = Date.now() + timeout;
  for (;;) {
    try {
      return await claim();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}

/** How many elements there are, once there are that many. */
export const counts = (locator, n) => holds(async () => assert.equal(await locator.count(), n));

export const focused = (locator) => holds(async () => assert.ok(await locator.evaluate((el) => el === document.activeElement), "it did not get the focus"));

/** Lets time pass to prove that nothing happens in it. For nothing else: what is to happen is waited for. */
export async function quietly(page, milliseconds, claim) {
  await page.waitForTimeout(milliseconds);
  await claim();
}

/** Waits until something is so. */
export async function until(so, timeout = 60_000) {
  const end = Date.now() + timeout;
  while (!(await so())) {
    if (Date.now() > end) throw new Error("it did not become so in time");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
