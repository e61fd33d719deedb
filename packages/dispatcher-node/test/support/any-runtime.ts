import { openSqlite, serve, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { bearerToken } from "pawl/auth";
import { createClient } from "pawl/client";
import { sqliteStore } from "pawl/sqlite";

// This process of some runtime serves Pawl's API with what the runtime has for that, and calls it by the
// client.

type Fetch = (request: Request) => Promise<Response>;
type Server = { readonly url: string; close(): unknown };

declare const Bun: {
  serve(options: { port: number; hostname: string; fetch: Fetch }): {
    readonly port: number;
    stop(now: boolean): unknown;
  };
};
declare const Deno: {
  serve(
    options: { port: number; hostname: string; onListen(): void },
    fetch: Fetch,
  ): { readonly addr: { readonly port: number }; shutdown(): unknown };
};

const ORDER = defineWorkflow({
  name: "order",
  async run(event, step) {
    const order = await step.do("accept", () => event.payload);
    await step.sleep("a moment", 10);
    const { payload } = await step.waitForEvent<Map<string, bigint>>("go", { type: "go" });
    return { order, payload };
  },
});

const handle = openSqlite(":memory:");
const pawl = createWorkflows({
  workflows: { ORDER },
  store: sqliteStore(handle),
  authorize: { all: bearerToken("secret") },
});
await pawl.migrate();
const runner = startRunner(pawl);
const server = await serving(pawl.fetch);

const headers = { authorization: "Bearer secret" };
const client = createClient<typeof pawl>({ baseUrl: server.url, headers });
const order = await client.workflows.ORDER.create({ id: "o-1", params: { at: new Date(0) } });
const result = order.result({ timeout: "20 seconds" });
await order.sendEvent({ type: "go", payload: new Map([["n", 1n]]) });
const output = (await result) as { order: { at: Date }; payload: Map<string, bigint> };
const api = `${server.url}/api`;
const post = { method: "POST", headers: { ...headers, "content-type": "application/json" } };
console.log(
  JSON.stringify({
    output: [output.order.at.toISOString(), String(output.payload.get("n"))],
    statuses: [
      await statusOf(`${api}/workflows`),
      await statusOf(`${api}/nope`, { headers }),
      await statusOf(`${api}/workflows/order/instances`, { ...post, body: "{" }),
      await statusOf(`${api}/workflows/order/instances`, { ...post, body: "1".repeat(9_000_000) }),
    ],
  }),
);
await runner.stop();
await server.close();
await pawl.close();
handle.close();

async function statusOf(url: string, init?: RequestInit): Promise<number> {
  const response = await fetch(url, init);
  await response.text();
  return response.status;
}

async function serving(fetch: Fetch): Promise<Server> {
  const [port, hostname] = [0, "127.0.0.1"];
  const urlOf = (bound: number) => `http://${hostname}:${bound}`;
  if (typeof Bun !== "undefined") {
    const bun = Bun.serve({ port, hostname, fetch });
    return { url: urlOf(bun.port), close: () => bun.stop(true) };
  }
  if (typeof Deno !== "undefined") {
    const deno = Deno.serve({ port, hostname, onListen() {} }, fetch);
    return { url: urlOf(deno.addr.port), close: () => deno.shutdown() };
  }
  return serve({ fetch }, { port });
}
