import { randomBytes } from "node:crypto";
import { startRunner } from "@pawl/dispatcher-node";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { servers, sharedServer } from "../../packages/pawl/test/support/servers.js";
import { createShop } from "./app.js";

describe.each(servers.filter((kind) => kind === "postgres"))("the shop on %s", (kind) => {
  const name = `shop_${randomBytes(6).toString("hex")}`;
  let admin: pg.Client;
  let pool: pg.Pool;

  beforeAll(async () => {
    const url = new URL(sharedServer(kind));
    admin = new pg.Client({ connectionString: url.href });
    await admin.connect();
    await admin.query(`CREATE DATABASE ${name}`);
    url.pathname = `/${name}`;
    pool = new pg.Pool({ connectionString: url.href });
  });
  afterAll(async () => {
    await pool.end();
    await admin.query(`DROP DATABASE ${name} WITH (FORCE)`);
    await admin.end();
  });

  test("takes an order and its workflow together, or neither", async () => {
    const { app, pawl, migrate } = createShop(pool);
    await migrate();
    const runner = startRunner(pawl);
    const post = (path: string, body: object): Promise<Response> =>
      Promise.resolve(app.request(path, { method: "POST", body: JSON.stringify(body) }));

    const taken = await post("/orders", { email: "ada@example.org" });
    expect([taken.status, await taken.json()]).toEqual([201, { id: "order-1" }]);
    // The table refuses a second order of an e-mail address, and its workflow goes with it.
    expect((await post("/orders", { email: "ada@example.org" })).status).toBe(409);
    expect((await pawl.list("order")).instances.map(({ id }) => id)).toEqual(["order-1"]);

    const payment = { order: "order-1", payment: "payment-7", amount: 42 };
    expect((await post("/payments", payment)).status).toBe(204);
    expect((await post("/payments", payment)).status).toBe(204);
    const order = await pawl.workflows.ORDER.get("order-1");
    expect(await order.result({ timeout: "20 seconds" })).toEqual({ orderId: 1, amount: 42 });
    const { details } = (await (
      await app.request("/api/workflows/order/instances/order-1")
    ).json()) as { details: { status: string } };
    expect(details.status).toBe("complete");

    await runner.stop();
    await pawl.close();
  });
});
