// Starts the real daemon in a directory of its own, and ends it and nothing else.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const run = promisify(execFile);
const binary = process.env.TURNKEEPER_BIN ?? fileURLToPath(new URL("../../bin/turnkeeper", import.meta.url));

export class Daemon {
  /** @param {{ env?: Record<string, string>, alone?: boolean, config?: string }} options `alone`: with no other variable than those of `env` */
  constructor(options = {}) {
    if (!existsSync(binary)) throw new Error(`${binary} is missing; build it with: make build`);
    this.home = mkdtempSync(join(tmpdir(), "turnkeeper-e2e-"));
    this.options = options;
    if (options.config) writeFileSync(join(this.home, "config.toml"), options.config, { mode: 0o600 });
    this.listen = "127.0.0.1:0";
    this.errors = "";
  }

  async start() {
    this.process = spawn(binary, ["serve", "--json", "--home", this.home, "--listen", this.listen], {
      env: { ...(this.options.alone ? {} : clean(process.env)), ...this.options.env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.exited = once(this.process, "exit");
    this.process.stderr.on("data", (chunk) => (this.errors += chunk));
    const line = await firstJSON(this.process, () => this.errors);
    this.url = line.url.replace(/\/$/, "");
    this.listen = line.address; // a restart comes back at the same place
    return this;
  }

  /** As the machine would: without a word. */
  async kill() {
    this.process.kill("SIGKILL");
    await this.exited;
  }

  async stop() {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill("SIGTERM");
      await this.exited;
    }
    rmSync(this.home, { recursive: true, force: true });
  }

  /** An address that signs a browser in, once. */
  async loginURL() {
    const { stdout } = await run(binary, ["open", "--print", "--json", "--home", this.home], { env: clean(process.env) });
    return JSON.parse(stdout).url;
  }

  /** A new token takes the place of the old one, while the daemon runs. */
  async rotate() {
    await run(binary, ["token", "--rotate", "--home", this.home], { env: clean(process.env) });
    delete this.token;
  }

  /** A call with the token, as another client makes it. */
  async call(method, path, body, client = "cli") {
    this.token ??= readFileSync(join(this.home, "token"), "utf8").trim();
    const response = await fetch(this.url + path, {
      method,
      headers: {
        Authorization: `Bearer ${this.token}`,
        "Turnkeeper-Client": client,
        ...(body ? { "Content-Type": "application/json" } : {}),
      },
      body: body ? JSON.stringify(body) : undefined,
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}

/** The environment without what would lead to another daemon. */
function clean(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("TURNKEEPER_")));
}

/** What a process says first. */
export async function firstJSON(process, errors) {
  let text = "";
  process.stdout.setEncoding("utf8");
  for await (const chunk of process.stdout.iterator({ destroyOnReturn: false })) {
    text += chunk;
    try {
      return JSON.parse(text);
    } catch {
      // more is to come
    }
  }
  throw new Error(`it did not start: ${errors() || text}`);
}
