// npm start: three workflows on a SQLite file, an HTTP API, and a page that shows them.
import { mkdirSync, readFileSync } from "node:fs";
import {
  drainOnSignals,
  openSqlite,
  serve,
  startRunner,
  type RunningServer,
} from "@pawl/dispatcher-node";
import { createWorkflows, WorkflowError } from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { registry } from "./workflows.js";

const FOLDER = ".pawl";
const PORT = 3000;

mkdirSync(FOLDER, { recursive: true });
const pawl = createWorkflows({
  workflows: registry,
  store: sqliteStore(openSqlite(`${FOLDER}/demo.db`)),
});
await pawl.migrate();
await startOnce();
const order = await orderToApprove();
const before = await summary();
const runner = startRunner(pawl);
const server = await serveOnFreePort();
drainOnSignals([server, runner], { timeoutMs: 5_000 });
sayHello(server.url);

/** Creates the instances once. Their ids are fixed, so a second start finds them as they are. */
async function startOnce(): Promise<void> {
  const { ORDER, ONBOARDING, REPORT } = pawl.workflows;
  const create = [
    () => ORDER.create({ id: "order-1", params: { item: "a lamp", amount: 42 } }),
    () => ONBOARDING.create({ id: "ada", params: { email: "ada@example.org" } }),
    () => REPORT.create({ id: "report-1", params: { chapters: 5 } }),
  ];
  for (const each of create) {
    await each().catch((error: unknown) => {
      const isThere = error instanceof WorkflowError && error.code === "INSTANCE_ID_ALREADY_EXISTS";
      if (!isThere) throw error;
    });
  }
}

/** Returns an order that has not ended, which the commands below name. */
async function orderToApprove(): Promise<string> {
  const { instances } = await pawl.list("order", { pageSize: 100 });
  const isOpen = new Set<string>(["queued", "running", "waiting"]);
  const oldest = instances.findLast(({ details }) => isOpen.has(details.status));
  if (oldest !== undefined) return oldest.id;
  const { id } = await pawl.workflows.ORDER.create({ params: { item: "a lamp", amount: 42 } });
  return id;
}

async function summary(): Promise<string> {
  const lines: string[] = [];
  for (const { name } of Object.values(registry)) {
    if (name === "chapter") continue; // belongs to the report
    const { instances, hasNextPage } = await pawl.list(name, { pageSize: 5 });
    const states = instances.map(({ id, details }) => `${id} (${details.status})`);
    lines.push(`  ${name.padEnd(11)} ${states.join(", ")}${hasNextPage ? " …" : ""}`);
  }
  return lines.join("\n");
}

async function serveOnFreePort(): Promise<RunningServer> {
  const served = { fetch: answer, runner: pawl.runner };
  const wanted = Number(process.env["PORT"] ?? PORT);
  try {
    return await serve(served, { port: wanted });
  } catch (error) {
    const isTaken = (error as { code?: string }).code === "EADDRINUSE";
    if (!isTaken || process.env["PORT"] !== undefined) throw error;
    return serve(served, { port: 0 });
  }
}

function answer(request: Request): Response | Promise<Response> {
  const { pathname } = new URL(request.url);
  if (pathname !== "/") return pawl.fetch(request);
  // The page is read for each request: change it and reload.
  const page = readFileSync(new URL("../../demo/page.html", import.meta.url));
  return new Response(page, {
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy":
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
    },
  });
}

function sayHello(url: string): void {
  const api = `${url}/api/workflows`;
  console.log(`
Pawl runs. Look at ${url}

In ${FOLDER}/demo.db at the start:
${before}

Approve ${order} when it waits for that, look at it, start another one, list the orders:

  curl -X POST ${api}/order/instances/${order}/events -H 'content-type: application/json' -d '{"type":"approved","payload":{"by":"Grace"}}'
  curl ${api}/order/instances/${order}
  curl -X POST ${api}/order/instances -H 'content-type: application/json' -d '{"params":{"item":"a chair","amount":99}}'
  curl '${api}/order/instances?pageSize=10'

Ctrl-C stops it. Start it again, and everything goes on where it was; delete ${FOLDER} to begin anew.`);
}
