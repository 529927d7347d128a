// Fails the build when the view grows beyond its budget: what the first load needs, and all of it.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

const first = 80 * 1024;
const all = 200 * 1024;

const dist = new URL("../dist/", import.meta.url);
const size = (path) => gzipSync(readFileSync(new URL(path, dist)), { level: 9 }).length;
if (!existsSync(new URL("index.html", dist))) throw new Error("dist/index.html is missing: run the build first");

const html = readFileSync(new URL("index.html", dist), "utf8");
const named = [...html.matchAll(/(?:src|href)="\/([^"]+\.(?:js|css|svg))"/g)].map((m) => m[1]);
const load = ["index.html", ...new Set(named)].reduce((sum, path) => sum + size(path), 0);
const files = readdirSync(dist, { recursive: true }).filter((f) => /\.(html|js|css|svg)$/.test(f));
const total = files.reduce((sum, path) => sum + size(path), 0);

const kb = (n) => `${(n / 1024).toFixed(1)} KB`;
console.log(`first load ${kb(load)} gz of ${kb(first)}, all ${kb(total)} gz of ${kb(all)}`);
if (load > first || total > all) {
  console.error("the web view is over its budget");
  process.exit(1);
}
