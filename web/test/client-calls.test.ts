// The generated client's calls (clientgen/ts): typed by the document, errors with codes.

import { expect, it } from "vitest";
import { createClient, ProblemError, unwrap } from "#client/client";

it("calls what the document says, with a name and a token", async () => {
  const seen: Request[] = [];
  const client = createClient({
    baseUrl: "http://localhost:4880",
    token: "t",
    client: "test",
    fetch: async (request) => {
      seen.push(request);
      return Response.json({ items: [{ id: "ws_1", name: "one", path: "/p", createdAt: "" }] });
    },
  });
  const list = await unwrap(client.GET("/v1/workspaces"));
  expect(list.items[0]?.name).toBe("one");
  expect(seen[0]?.headers.get("authorization")).toBe("Bearer t");
  expect(seen[0]?.headers.get("turnkeeper-client")).toBe("test");
});

it("throws the daemon's own code, and does without a body", async () => {
  const answers = [
    new Response(JSON.stringify({ type: "", title: "Conflict", status: 409, code: "turn_canceling", detail: "A stop is under way." }), {
      status: 409,
      headers: { "content-type": "application/problem+json" },
    }),
    new Response("bad gateway", { status: 502 }),
    new Response(null, { status: 204 }),
  ];
  const client = createClient({ baseUrl: "http://localhost", fetch: async () => answers.shift()! });
  const remove = () => unwrap(client.DELETE("/v1/workspaces/{workspaceID}", { params: { path: { workspaceID: "ws" } } }));
  const refused = await remove().catch((e: unknown) => e);
  expect(refused).toBeInstanceOf(ProblemError);
  expect(refused).toMatchObject({ status: 409, code: "turn_canceling", message: "A stop is under way." });
  await expect(remove()).rejects.toMatchObject({ status: 502, code: "unknown" });
  await expect(remove()).resolves.toBeUndefined();
});
