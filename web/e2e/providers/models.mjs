// The scripted models that the real programs talk to, and a daemon that has both programs.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Daemon, firstJSON } from "../daemon.mjs";

const binary = process.env.TURNKEEPER_MODELSERVER ?? fileURLToPath(new URL("../../../bin/modelserver", import.meta.url));
const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Every scenario and its gates are in server/provider/modeltest/modelserver/scripts.go. */
export class Models {
  async start() {
    this.process = spawn(binary, [], { cwd: root, stdio: ["pipe", "pipe", "pipe"] });
    this.exited = once(this.process, "exit");
    let errors = "";
    this.process.stderr.on("data", (chunk) => (errors += chunk));
    Object.assign(this, await firstJSON(this.process, () => errors));
    return this;
  }

  /** A daemon with both programs, and with nothing of the environment that the tests run in. */
  daemon() {
    const list = (names) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
    const config = `
[providers.codex]
bin = ${JSON.stringify(this.codex)}
env = ${list(this.allow)}
[providers.claude]
bin = ${JSON.stringify(this.claude)}
env = ${list(this.allow)}
settings = []
permission_mode = "default"
`;
    return new Daemon({ env: this.env, alone: true, config });
  }

  /** Lets replies at the gate go, now and later. */
  open = (provider, gate) => this.#ask("POST", `/${provider}/open/${gate}`);

  /** Answers when a reply is held at the gate: that agent is at work, and stays so. */
  held = (provider, gate) => this.#ask("POST", `/${provider}/held/${gate}`);

  /** Answers when nobody waits at the gate any more: its program has given up. */
  left = (provider, gate) => this.#ask("POST", `/${provider}/left/${gate}`);

  /** What the programs have done that they must not have. To be asked when the daemon has ended. */
  problems = () => this.#ask("GET", "/problems").then((r) => r.json());

  async stop() {
    this.process?.stdin.end();
    await this.exited;
  }

  async #ask(method, path) {
    const response = await fetch(this.url + path, { method, signal: AbortSignal.timeout(30_000) });
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return response;
  }
}
