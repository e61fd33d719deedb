import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "../index.js";
import { sqliteStore } from "../sqlite.js";
import { Harness } from "../testing/harness.js";
import { VirtualTime } from "../testing/virtual-time.js";

class Order extends WorkflowEntrypoint<unknown, { n: number }> {
  async run(event: WorkflowEvent<{ n: number }>, step: WorkflowStep): Promise<unknown> {
    const a = await step.do("a", async () => event.payload.n + 1);
    let tries = 0;
    const f = await step.do(
      "flaky",
      { retries: { limit: 2, delay: "5 seconds", backoff: "constant" } },
      async ({ attempt }) => {
        tries += 1;
        if (attempt < 3) throw new Error(`no ${attempt}`);
        return attempt;
      },
    );
    await step.sleep("nap", "24 hours");
    const winner = await Promise.race([
      step.sleep("slow", "2 hours").then(() => "slow"),
      step.sleep("fast", "1 hour").then(() => "fast"),
    ]);
    const e = await step.waitForEvent<{ ok: boolean }>("approval", {
      type: "approval",
      timeout: "1 hour",
    });
    const both = await Promise.all([step.do("x", () => 1), step.do("y", () => 2)]);
    return { a, f, winner, e, both };
  }
}

for (const liveRuns of [1000, 0]) {
  test(`smoke, ${liveRuns} live`, async () => {
    const clock = new VirtualTime();
    const store = sqliteStore(new DatabaseSync(":memory:"), { clock });
    await store.migrate();
    const h = new Harness({
      workflows: { ORDER: { name: "order", workflow: Order } },
      store,
      clock,
      logger: {
        debug: (...a) => process.env["V"] && console.log(...a),
        info: console.log,
        warn: console.log,
        error: console.log,
      },
      runner: { live: { runs: liveRuns, bytes: 1e9 } },
    });
    const order = await h.workflows.ORDER.create({ id: "o1", params: { n: 1 } });
    await h.runUntilIdle();
    expect(await order.status()).toEqual({ status: "waiting" });
    await h.clock.advance("5 seconds");
    await h.runUntilIdle();
    await h.clock.advance("5 seconds");
    await h.runUntilIdle();
    await h.clock.advance("24 hours");
    await h.runUntilIdle();
    await h.clock.advance("1 hour");
    await h.runUntilIdle();
    expect(await order.status()).toEqual({ status: "waiting" });
    await order.sendEvent({ type: "approval", payload: { ok: true } });
    await h.runUntilIdle();
    expect(await order.status()).toMatchObject({
      status: "complete",
      output: { a: 2, f: 3, winner: "fast", e: { payload: { ok: true } }, both: [1, 2] },
    });
    const hist = await h.history("order", "o1");
    if (process.env["V"]) console.log(JSON.stringify(hist, null, 1));
  });
}
