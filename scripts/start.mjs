// @ts-check
// A small order, from its creation to its end, on a SQLite file in a temporary folder.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { sqliteStore } from "pawl/sqlite";

const startedAtMs = performance.now();
/** @param {string} text */
function say(text) {
  const ms = Math.round(performance.now() - startedAtMs);
  console.log(`${String(ms).padStart(5)} ms  ${text}`);
}

const receipt = defineWorkflow({
  name: "receipt",
  /** @param {import("pawl").WorkflowEvent<{ order: string }>} event */
  run: (event, step) =>
    step.do("print", () => {
      say(`receipt: printed for ${event.payload.order}`);
      return "printed";
    }),
});

const order = defineWorkflow({
  name: "order",
  /** @param {import("pawl").WorkflowEvent<{ amount: number }>} event */
  async run(event, step, { workflows }) {
    const retries = { limit: 3, delay: "200 ms" };
    const payment = await step.do("charge the card", { retries }, ({ attempt }) => {
      say(`order: charging ${event.payload.amount}, attempt ${attempt}`);
      if (attempt === 1) throw new Error("the bank does not answer");
      return `payment-${attempt}`;
    });
    await step.sleep("let it settle", "300 ms");
    const approval = await step.waitForEvent("approval", { type: "approved", timeout: "1 day" });
    await step.do("send a receipt", async () => {
      await workflows["RECEIPT"]?.create({ params: { order: event.instanceId } });
    });
    return { payment, approval: approval.payload };
  },
});

const folder = mkdtempSync(join(tmpdir(), "pawl-"));
const handle = openSqlite(join(folder, "pawl.db"));
const pawl = createWorkflows({
  workflows: { ORDER: order, RECEIPT: receipt },
  store: sqliteStore(handle),
});
await pawl.migrate();
const runner = startRunner(pawl);
try {
  const instance = await pawl.workflows.ORDER.create({ id: "order-1", params: { amount: 42 } });
  say("created order-1");

  while (!(await isWaitingFor("approval"))) await pause(20);
  say(`status: ${(await instance.status()).status}; the demo approves`);
  await instance.sendEvent({ type: "approved", payload: { by: "Ada" } });

  say(`result: ${JSON.stringify(await instance.result({ timeout: "10 seconds" }))}`);
  const [child] = (await pawl.list("receipt")).instances;
  if (child === undefined) throw new Error("the order has no receipt");
  const printed = await pawl.workflows.RECEIPT.get(child.id);
  say(`its receipt: ${await printed.result({ timeout: "10 seconds" })}`);

  console.log("\nThe history of order-1:");
  for (const entry of (await pawl.history("order", "order-1")).entries) {
    console.log(`  ${lineOf(entry)}`);
  }
} finally {
  await runner.stop();
  await pawl.close();
  handle.close();
  rmSync(folder, { recursive: true });
}

/** @param {string} step */
async function isWaitingFor(step) {
  const { entries } = await pawl.history("order", "order-1");
  return entries.some((entry) => entry.kind === "step" && entry.name === step);
}

/** @param {import("pawl").HistoryEntry} entry */
function lineOf(entry) {
  if (entry.kind === "event") return `event         ${entry.type} ${JSON.stringify(entry.payload)}`;
  const attempts = entry.attempts.length > 1 ? `, ${entry.attempts.length} attempts` : "";
  return `${entry.type.padEnd(12)}  ${entry.name}: ${entry.status}${attempts}`;
}
