// Judges lines that an agent wrote, one JSON object on each line of the standard input:
// {version, answers, line}. Both of the published package's ways are asked: its validators,
// which clients run, and its JSON schema, which forgives less.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import * as readline from "node:readline";

const require = createRequire(import.meta.url);
const Ajv = require("ajv/dist/2020").default;
const root = new URL("./node_modules/@agentclientprotocol/sdk/", import.meta.url);

async function load(version) {
  const schema = JSON.parse(readFileSync(new URL(`schema/v${version}/schema.unstable.json`, root), "utf8"));
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
  ajv.addSchema(schema, "acp");
  const zod = await import(new URL(`dist/v${version}/unstable/schema/zod.gen.js`, root));
  const byMethod = new Map();
  for (const [name, def] of Object.entries(schema.$defs)) {
    if (def["x-method"] && name.endsWith("Response")) byMethod.set(def["x-method"], name);
  }
  const kinds = new Set(JSON.stringify(schema.$defs.SessionUpdate).match(/"sessionUpdate":\{[^}]*"const":"[a-z_]+"/g).map((s) => s.match(/"const":"([a-z_]+)"/)[1]));
  const checks = new Map();
  return { byMethod, kinds, check(name, value) {
    if (!checks.has(name)) checks.set(name, { ajv: ajv.getSchema(`acp#/$defs/${name}`), zod: zod[`z${name}`] });
    const c = checks.get(name);
    if (!c.ajv || !c.zod) return `no schema ${name}`;
    if (!c.ajv(value)) return c.ajv.errors.slice(0, 3).map((e) => `${e.instancePath} ${e.message}`).join("; ");
    const r = c.zod.safeParse(value);
    return r.success ? "" : r.error.message;
  } };
}

const versions = { 1: await load(1), 2: await load(2) };
const requests = {
  "session/update": (v) => (v === 1 ? "SessionNotification" : "UpdateSessionNotification"),
  "session/request_permission": "RequestPermissionRequest",
  "elicitation/create": "CreateElicitationRequest",
  "$/cancel_request": "CancelRequestNotification",
};

function judge({ version, answers, line }) {
  const v = versions[version];
  if (line.jsonrpc !== "2.0") return "jsonrpc is not 2.0";
  if (line.method) {
    const of = requests[line.method];
    const name = typeof of === "function" ? of(version) : of;
    if (!name) return `method ${line.method}`;
    const kind = line.params?.update?.sessionUpdate;
    if (kind && !v.kinds.has(kind)) return `update ${kind} is not of version ${version}`;
    return v.check(name, line.params);
  }
  if (line.error) return v.check("Error", line.error);
  if (!answers) return "an answer to nothing";
  const name = v.byMethod.get(answers);
  return name ? v.check(name, line.result) : `an answer to ${answers}`;
}

let n = 0, bad = 0;
for await (const text of readline.createInterface({ input: process.stdin })) {
  n++;
  const item = JSON.parse(text);
  const fault = judge(item);
  if (fault && ++bad <= 20) console.error(`v${item.version} ${item.answers ?? ""}: ${fault}\n  ${JSON.stringify(item.line)}`);
}
console.log(`${n} lines, ${bad} bad`);
process.exit(bad ? 1 : 0);
