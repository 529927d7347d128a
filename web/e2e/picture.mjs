// Draws docs/web-view.png: the three reviewers at work, from a real daemon.

import { fileURLToPath } from "node:url";
import * as b from "./browser.mjs";
import { Daemon } from "./daemon.mjs";

const target = process.argv[2] ?? fileURLToPath(new URL("../../docs/web-view.png", import.meta.url));
const daemon = await new Daemon({ env: { TURNKEEPER_DEMO_SPEED: "1.2" } }).start();
const browser = await b.launch();
try {
  const ws = await b.workspace(daemon);
  const done = (s) => b.until(async () => /^(completed|failed|canceled|interrupted)$/.test(await b.outcome(daemon, ws, s)));
  const early = [
    await b.begin(daemon, ws, "plain", "Look at the retry code"),
    await b.begin(daemon, ws, "failing-child", "Check the release"),
    await b.begin(daemon, ws, "continuation", "Find the slow query"),
  ];
  await Promise.all(early.map(done));
  const stopped = await b.begin(daemon, ws, "root-first", "Run every test");
  await daemon.call("POST", `/v1/workspaces/${ws.id}/agent-sessions/${stopped.session}/turns/${stopped.turn}/cancel`);
  await done(stopped);
  await b.begin(daemon, ws, "never-cancels", "Roll out the shop");
  const s = await b.begin(daemon, ws, "three-reviewers", "Review the session change on this branch: security, tests, style. Run the tests you need.");
  const { page } = await b.signIn(browser, daemon, { viewport: { width: 1440, height: 1000 }, colorScheme: "light", deviceScaleFactor: 1.5 });
  // Whoever draws the picture has a directory of their own; it is none of the reader's business.
  const anyone = (text) => String(text).replaceAll(daemon.home, "/home/you/shop");
  await page.route("**/agent-sessions/*", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: anyone(await response.text()) });
  });
  await page.routeWebSocket(/stream/, (socket) => socket.connectToServer().onMessage((m) => socket.send(anyone(m))));
  await page.goto(b.address(daemon, ws, s.session));
  await page.getByRole("region", { name: /Security reviewer asks/ }).waitFor();
  await page.getByText("go test -coverprofile").first().waitFor();
  await page.getByText(/asked [2-9] s ago/).waitFor();
  await page.screenshot({ path: target });
  console.log(target);
} finally {
  await browser.close();
  await daemon.stop();
}
