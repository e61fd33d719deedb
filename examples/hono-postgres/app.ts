import { Hono } from "hono";
import { createWorkflows } from "pawl";
import { postgresStore } from "pawl/postgres";
import type pg from "pg";
import { ORDER } from "./workflows.js";

/** A shop on PostgreSQL: its own table, its own routes, and Pawl's API beside them. */
export function createShop(pool: pg.Pool) {
  const pawl = createWorkflows({ workflows: { ORDER }, store: postgresStore(pool) });

  async function migrate(): Promise<void> {
    await pool.query(
      "CREATE TABLE IF NOT EXISTS orders (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, email text NOT NULL UNIQUE)",
    );
    await pawl.migrate();
  }

  const app = new Hono();

  /** The order and its workflow, or neither: both are rows of one transaction. */
  app.post("/orders", async (c) => {
    const { email } = await c.req.json<{ email: string }>();
    const client = await pool.connect();
    try {
      await client.query("BEGIN");
      const inserted = await client.query<{ id: number }>(
        "INSERT INTO orders (email) VALUES ($1) RETURNING id",
        [email],
      );
      const orderId = inserted.rows[0]?.id ?? 0;
      const id = `order-${orderId}`;
      await pawl.workflows.ORDER.create({ id, params: { orderId, email } }, { tx: client });
      await client.query("COMMIT");
      pawl.wake(); // only a hint: a runner would find it by itself
      return c.json({ id }, 201);
    } catch {
      await client.query("ROLLBACK");
      return c.json({ error: "the order was not taken" }, 409);
    } finally {
      client.release();
    }
  });

  /** A payment provider's webhook. The id makes a repeated call harmless. */
  app.post("/payments", async (c) => {
    const { order, payment, amount } = await c.req.json<{
      order: string;
      payment: string;
      amount: number;
    }>();
    const instance = await pawl.workflows.ORDER.get(order);
    await instance.sendEvent({ type: "paid", id: payment, payload: { amount } });
    return c.body(null, 204);
  });

  app.all("/api/*", (c) => pawl.fetch(c.req.raw));
  return { app, pawl, migrate };
}
