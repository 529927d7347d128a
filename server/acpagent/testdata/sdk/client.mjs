// The published client side against our agent: node client.mjs VERSION CWD PROGRAM. The
// provider behind the agent is played by whoever started this; what happens here is told on
// the standard output, one JSON object on each line.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const [version, cwd, program] = [Number(process.argv[2]), process.argv[3], process.argv[4]];
const acp = await import(version === 1 ? "@agentclientprotocol/sdk/unstable" : "@agentclientprotocol/sdk/experimental/v2/unstable");
const agentMethods = acp.AGENT_METHODS, clientMethods = acp.CLIENT_METHODS;
const tell = (what, more = {}) => console.log(JSON.stringify({ what, ...more }));

function editor(seen) {
  return acp.client({ name: "editor" })
    .onRequest(clientMethods.session_request_permission, ({ params }) => {
      tell("asked", { session: params.sessionId });
      return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
    })
    .onNotification(clientMethods.session_update, ({ params }) => seen(params));
}

async function withAgent(seen, work) {
  const child = spawn(program, [], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  await editor(seen).connectWith(stream, async (ctx) => {
    const me = { name: "editor", version: "1" };
    const hello = version === 1
      ? { protocolVersion: 1, clientInfo: me, clientCapabilities: { subagents: {} } }
      : { protocolVersion: 2, info: me, capabilities: {} };
    const card = await ctx.request(agentMethods.initialize, hello);
    if (card.protocolVersion !== version) throw new Error(`version ${card.protocolVersion}`);
    await work(ctx);
  });
  child.stdin.end();
  tell("left", { code: await ended });
}

// What is known of children: parents from the outer id, states, and grants that count.
const children = new Map();
let onChild = () => {}, idle = () => {};
function seen({ sessionId, update }) {
  if (update.sessionUpdate === "subagent_update") {
    const c = children.get(update.sessionId) ?? { parent: sessionId };
    if (update.title) c.title = update.title;
    if (update.state) c.state = update.state.state, c.reason = update.state.stopReason;
    if (update.capabilities !== undefined) c.grant = typeof update.capabilities?.cancel === "object" && update.capabilities.cancel !== null;
    children.set(update.sessionId, c);
    onChild(update.sessionId, c);
  }
  if (update.sessionUpdate === "state_update" && update.state === "idle" && !children.has(sessionId)) idle(update.stopReason);
}

let session;
await withAgent(seen, async (ctx) => {
  ({ sessionId: session } = await ctx.request(agentMethods.session_new, { cwd, mcpServers: [], _meta: { turnkeeper: { provider: "fake" } } }));
  let canceled = false;
  onChild = (id, c) => {
    if (c.title === "alpha" && c.grant && !canceled) {
      canceled = true;
      ctx.notify(agentMethods.session_cancel, { sessionId: id });
    }
    if (c.title === "alpha" && c.state === "idle" && !c.grant) tell("alpha ended", { reason: c.reason, parent: c.parent === session });
  };
  const end = new Promise((resolve) => { idle = resolve; });
  const answer = await ctx.request(agentMethods.session_prompt, { sessionId: session, prompt: [{ type: "text", text: "go" }] });
  tell("prompt ended", { reason: version === 1 ? answer.stopReason : await end });
  await ctx.request(agentMethods.session_prompt, { sessionId: [...children.keys()][0], prompt: [{ type: "text", text: "no" }] })
    .then(() => tell("a child took a prompt"), (e) => tell("refused", { code: e.code }));
});

children.clear();
const replayed = [];
await withAgent((n) => {
  seen(n);
  if (n.update.content?.text) replayed.push(n.update.content.text);
}, async (ctx) => {
  const p = { sessionId: session, cwd, mcpServers: [] };
  let settled = () => {};
  const both = new Promise((resolve) => { settled = resolve; });
  onChild = () => {
    const all = [...children.values()];
    if (all.length === 2 && all.every((c) => c.state === "idle")) settled();
  };
  if (version === 1) await ctx.request(agentMethods.session_load, p);
  else await ctx.request(agentMethods.session_resume, { ...p, replayFrom: { type: "start" } });
  await both;
  const { sessions } = await ctx.request(agentMethods.session_list, {});
  tell("replayed", { texts: replayed, grants: [...children.values()].filter((c) => c.grant).length, states: [...children.values()].map((c) => c.reason).sort(), sessions: sessions.length });
});
