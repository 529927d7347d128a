// A real Chromium, and the steps that the tests share.

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

/** A page that is signed in. What it logs as an error, and what it may not load, fails the test that asks `clean`. */
export async function signIn(browser, daemon, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
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

export const address = (daemon, ws, ...ids) => `${daemon.url}/w/${ws.id}${ids.length ? `/s/${ids.join("/")}` : ""}`;
export const lane = (page, name) => page.getByRole("region", { name: new RegExp(`^${name}, `) });
export const why = (page) => page.locator("#why");

/** Waits until the text of a locator matches. */
export async function says(locator, pattern, timeout = 20_000) {
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

/** Waits until something is so. */
export async function until(so, timeout = 60_000) {
  const end = Date.now() + timeout;
  while (!(await so())) {
    if (Date.now() > end) throw new Error("it did not become so in time");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
