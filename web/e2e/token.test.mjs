// Who has no right any more is told so, at once.

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

test("a page whose token was replaced says how to sign in, does not try for ever, and a new link opens it again", async () => {
  const { page } = await b.follow(browser, daemon, ws, "plain");
  let calls = 0;
  await daemon.rotate();
  await page.getByText("turnkeeper open").first().waitFor({ timeout: 5000 }); // not at the next call: by itself
  page.on("request", (r) => r.url().includes("/v1/") && calls++);
  page.on("websocket", () => calls++);
  await b.quietly(page, 3000, () => assert.equal(calls, 0));
  await page.goto(await daemon.loginURL());
  await page.getByRole("link", { name: /plain/ }).or(page.getByText("plain")).first().waitFor();
});
