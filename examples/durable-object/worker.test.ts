import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createHarness } from "pawl/testing";
import { onTestFinished, expect, test } from "vitest";
import { bundled, workerd } from "../../packages/dispatcher-cloudflare-do/test/support/workerd.js";
import { examplesIn, regionsOf, wholeOf } from "../../packages/dispatcher-node/test/quoted.js";
import { registry } from "./workflows.js";

const token = "a-secret-of-at-least-24-bytes";
const here = (file: string): string => fileURLToPath(new URL(file, import.meta.url));

type Config = {
  compatibility_date: string;
  durable_objects: { bindings: { name: string; class_name: string }[] };
  migrations: { new_sqlite_classes: string[] }[];
};

test("the worker takes an order, and its API serves only callers with the token", async () => {
  const config = JSON.parse(readFileSync(here("wrangler.json"), "utf8")) as Config;
  const isSqlite = (name: string) =>
    config.migrations.some(({ new_sqlite_classes: classes }) => classes.includes(name));
  const server = workerd(await bundled(here("worker.ts")), "", {
    compatibilityDate: config.compatibility_date,
    bindings: { API_TOKEN: token },
    durableObjects: Object.fromEntries(
      config.durable_objects.bindings.map(({ name, class_name: className }) => [
        name,
        { className, useSQLite: isSqlite(className) },
      ]),
    ),
  });
  onTestFinished(() => server.dispose());
  const api = async (path: string, init: { method?: string; body?: string } = {}) => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await server.dispatchFetch(`http://orders/api${path}`, { ...init, headers });
    return (await answer.json()) as { details: object };
  };

  const made = await server.dispatchFetch("http://orders/");
  const { id } = (await made.json()) as { id: string };
  const approved = JSON.stringify({ type: "approved", payload: { by: "Grace" } });
  await api(`/workflows/order/instances/${id}/events`, { method: "POST", body: approved });
  await expect
    .poll(async () => (await api(`/workflows/order/instances/${id}`)).details, { timeout: 20_000 })
    .toEqual({
      status: "complete",
      output: { payment: "charged Ada", approvedBy: "Grace" },
    });
  const stranger = await server.dispatchFetch("http://orders/api/workflows");
  expect(stranger.status).toBe(401);
});

test("the same workflow runs in Node, without workerd and without waiting", async () => {
  const h = await createHarness({ workflows: registry });
  onTestFinished(() => h.close());
  const order = await h.workflows.ORDER.create({ id: "o1", params: { customer: "Ada" } });
  await h.waitForStep("order", "o1", "charge");
  await h.clock.advance("1 second");
  await h.sendEvent("order", "o1", { type: "approved", payload: { by: "Grace" } });
  await h.runUntilIdle();
  expect(await order.result()).toEqual({ payment: "charged Ada", approvedBy: "Grace" });
});

test("the sharded worker spreads its orders, and forgets those that ended long ago", async () => {
  const script = await bundled(here("sharded.ts"));
  const server = workerd(script, "", {
    bindings: { KEEP_MS: 500 },
    durableObjects: { PAWL: { className: "PawlHost", useSQLite: true } },
  });
  onTestFinished(() => server.dispose());
  const made = await server.dispatchFetch("http://orders/");
  expect(await made.json()).toEqual(["a", "b", "c", "d"].map((id) => `charged ${id}`));
  const listed = async () => {
    const page = await server.dispatchFetch("http://orders/api/workflows/order/instances");
    return ((await page.json()) as { instances: object[] }).instances.length;
  };
  // Each object forgets at its next alarm, which is there in case of a crash.
  await expect.poll(listed, { timeout: 30_000 }).toBe(0);
});

test("during a move both engines have orders, and each order is found", async () => {
  const server = workerd(await bundled(here("moving.ts")), "", {
    durableObjects: { PAWL: { className: "PawlHost", useSQLite: true } },
    workflows: { OLD_ORDERS: { name: "old-orders", className: "OldOrders" } },
  });
  onTestFinished(() => server.dispose());
  const ask = async (path: string) => (await server.dispatchFetch(`http://orders${path}`)).json();
  await ask("/old?id=early");
  await ask("/new?id=late");
  for (const id of ["early", "late"]) {
    await expect
      .poll(() => ask(`/?id=${id}`), { timeout: 30_000 })
      .toMatchObject({ status: "complete", output: "charged Ada" });
  }
});

test("docs/durable-objects.md quotes the workers", () => {
  expect(examplesIn("docs/durable-objects.md")).toEqual([
    wholeOf("examples/durable-object/workflows.ts"),
    wholeOf("examples/durable-object/worker.ts"),
    ...regionsOf("examples/durable-object/sharded.ts"),
    ...regionsOf("examples/durable-object/moving.ts"),
  ]);
  const config = wholeOf("examples/durable-object/wrangler.json");
  expect(wholeOf("docs/durable-objects.md")).toContain(`\`\`\`json\n${config}\`\`\``);
});
