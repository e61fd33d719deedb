// These are the examples of docs/http-api.md. Each region is quoted there word for word, which the last test
// checks.
import { openSqlite, serve, startRunner } from "@pawl/dispatcher-node";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { createWorkflows, defineWorkflow, WorkflowError } from "pawl";
import { bearerToken } from "pawl/auth";
import { createClient } from "pawl/client";
import { operationEntries } from "pawl/operations";
import { sqliteStore } from "pawl/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { examplesIn, regionsOf } from "./quoted.js";

const workflows = {
  ORDER: defineWorkflow({
    name: "order",
    async run(event, step) {
      const order = await step.do("accept", () => event.payload);
      const { payload } = await step.waitForEvent<string>("approval", { type: "approval" });
      return { order, approvedBy: payload };
    },
  }),
};

function openStore() {
  const handle = openSqlite(":memory:");
  onTestFinished(() => void handle.close());
  return sqliteStore(handle);
}

test("the API is served, and a client calls it", async () => {
  const store = openStore();
  const secret = "s3cret";
  const port = 0;
  // #region serve
  const pawl = createWorkflows({
    workflows,
    store,
    authorize: { all: bearerToken(secret) },
  });
  await pawl.migrate();
  const runner = startRunner(pawl);
  const server = await serve(pawl, { port });
  // #endregion
  const { url } = server;
  // #region client
  const client = createClient<typeof pawl>({
    baseUrl: url, // the API is under its /api
    headers: { authorization: `Bearer ${secret}` },
  });
  const order = await client.workflows.ORDER.create({ id: "o-1", params: { due: new Date(0) } });
  await order.sendEvent({ type: "approval", payload: "Grace" });
  const { approvedBy } = await order.result({ timeout: "1 minute" });
  // #endregion
  expect(approvedBy).toBe("Grace");
  expect(await order.status()).toEqual({
    status: "complete",
    output: { order: { due: new Date(0) }, approvedBy: "Grace" },
  });
  // #region errors
  try {
    await client.workflows.ORDER.create({ id: "o-1" });
  } catch (error) {
    if (!(error instanceof WorkflowError) || error.code !== "INSTANCE_ID_ALREADY_EXISTS")
      throw error;
    // it was started before: nothing to do
  }
  // #endregion
  // #region stream
  const response = await fetch(`${url}/api/workflows/order/instances/o-1/events-stream`, {
    headers: { authorization: `Bearer ${secret}` },
  });
  const messages = await response.text(); // ends with the instance
  // #endregion
  expect(messages).toMatch(/event: status\ndata: \{"runNumber":1,"status":"complete"/);
  await server.close();
  await runner.stop();
  await pawl.close();
});

test("tools read the table of operations", () => {
  const lines: string[] = [];
  const console = { log: (line: string) => void lines.push(line) };
  // #region operations
  for (const [name, { route, group, summary }] of operationEntries) {
    console.log(`${name}: ${route.method} …/instances/:id${route.path} (${group}) ${summary}`);
  }
  // #endregion
  expect(lines).toContain("terminate: POST …/instances/:id/terminate (manage) Ends the instance.");
});

test("policies admit a tenant's own instances only", async () => {
  const store = openStore();
  const tenantOf = (headers: Headers) => headers.get("x-tenant");
  // #region policies
  const pawl = createWorkflows({
    workflows,
    store,
    authorize: {
      // First, for every request, also where there is no route.
      all: ({ headers }) => {
        if (tenantOf(headers) === null) throw new WorkflowError("UNAUTHORIZED", "who are you?");
      },
      // Then that of the route: create, manage, sendEvent, read or tick.
      create: async ({ headers, body }) => {
        // One instance, or a batch of them.
        type Given = { id?: string; instances?: { id?: string }[] };
        const given = ((await body()) ?? {}) as Given;
        const ids = (given.instances ?? [given]).map(({ id = "" }) => id);
        if (ids.every((id) => id.startsWith(`${tenantOf(headers)}-`))) return undefined;
        return Response.json({ code: "FORBIDDEN", message: "not your id" }, { status: 403 });
      },
      tick: bearerToken(["this month's", "last month's"].map(secretOf)),
    },
    tick: { enabled: true },
  });
  // #endregion
  await pawl.migrate();
  const create = async (tenant: string | null, ...ids: string[]) => {
    const [id] = ids;
    const isBatch = ids.length > 1;
    const instances = ids.map((each) => ({ id: each }));
    const answer = await pawl.fetch(
      new Request(`http://x/api/workflows/order/instances${isBatch ? "/batch" : ""}`, {
        method: "POST",
        headers: tenant === null ? {} : { "x-tenant": tenant },
        body: JSON.stringify(isBatch ? { instances } : { id }),
      }),
    );
    return [answer.status, ((await answer.json()) as { code?: string }).code];
  };
  expect(await create(null, "a-1")).toEqual([401, "UNAUTHORIZED"]);
  expect(await create("b", "a-1")).toEqual([403, "FORBIDDEN"]);
  expect(await create("a", "a-1")).toEqual([200, undefined]);
  expect(await create("a", "a-2", "b-1")).toEqual([403, "FORBIDDEN"]);
  expect(await create("a", "a-2", "a-3")).toEqual([200, undefined]);
  await pawl.close();

  function secretOf(name: string): string {
    return name.replaceAll(/\W/g, "");
  }
});

test("pages of another origin may call the API if it is allowed", async () => {
  const pawl = createWorkflows({ workflows, store: openStore() });
  await pawl.migrate();
  const port = 0;
  // #region origins
  const app = new Hono();
  app.use("/api/*", cors({ origin: "https://app.example.org" }));
  app.all("/api/*", (c) => pawl.fetch(c.req.raw));
  const server = await serve(app, { port });
  // #endregion
  const allowed = async (origin: string) => {
    const asked = { origin, "access-control-request-method": "POST" };
    const answer = await fetch(`${server.url}/api/workflows`, {
      method: "OPTIONS",
      headers: asked,
    });
    return answer.headers.get("access-control-allow-origin");
  };
  expect(await allowed("https://app.example.org")).toBe("https://app.example.org");
  expect(await allowed("https://other.example.org")).not.toBe("https://other.example.org");
  await server.close();
  await pawl.close();
});

test("the API can be mounted in an application", async () => {
  const store = openStore();
  // #region mount
  const pawl = createWorkflows({ workflows, store, basePath: "/jobs" });
  const app = new Hono();
  app.get("/", (c) => c.text("the application"));
  app.all("/jobs/*", (c) => pawl.fetch(c.req.raw));
  // #endregion
  await pawl.migrate();
  expect(await (await app.request("/")).text()).toBe("the application");
  expect(await (await app.request("/jobs/workflows")).json()).toEqual({
    workflows: [{ name: "order", binding: "ORDER" }],
  });
  await pawl.close();
});

test("the page has these examples and no others", () => {
  const examples = regionsOf("packages/dispatcher-node/test/http-page.unit.test.ts");
  expect(examplesIn("docs/http-api.md").toSorted()).toEqual(examples.toSorted());
});
