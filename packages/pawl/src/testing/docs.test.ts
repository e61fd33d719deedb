// These are the examples of docs/testing.md. Each region is quoted there word for word, which the last test
// checks.
import { readFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "../index.js";
import { createHarness, replay } from "./index.js";

// #region workflow
type Order = { email: string };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    const payment = await step.do("charge", () => chargeCard(event.payload.email));
    await step.sleep("cooling-off", "24 hours");
    const { payload } = await step.waitForEvent<string>("shipped", {
      type: "shipped",
      timeout: "7 days",
    });
    return { payment, parcel: payload };
  }
}

const workflows = { ORDER: { name: "order", workflow: OrderWorkflow } } as const;
// #endregion

async function chargeCard(_email: string): Promise<string> {
  throw new Error("no card is charged in a test");
}

async function started() {
  const h = await createHarness({ workflows });
  open.push(h);
  await h.workflows.ORDER.create({ id: "o1", params: { email: "a@example.org" } });
  return h;
}

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const h of open.splice(0)) await h.close();
});

test("the first example runs an order to its end", async () => {
  // #region first
  const h = await createHarness({ workflows });
  h.mockStep("charge", "payment-1");
  const order = await h.workflows.ORDER.create({ id: "o1", params: { email: "a@example.org" } });

  await h.waitForStep("order", "o1", "charge"); // runs what is due
  await h.clock.advance("24 hours"); // no real time passes
  await h.waitForStep("order", "o1", "shipped", "waiting");

  await h.sendEvent("order", "o1", { type: "shipped", payload: "parcel-1" });
  await h.runUntilIdle();

  expect(await order.result()).toEqual({ payment: "payment-1", parcel: "parcel-1" });
  await h.close();
  // #endregion
});

test("the failures example fails attempts and a wait", async () => {
  const h = await started();
  // #region failures
  h.mockStep("charge", new Error("card declined"), { times: 2 }); // two attempts fail
  h.mockStep("charge", "payment-1"); // and then this is the answer
  h.disableRetryDelays();
  h.disableSleeps();
  h.forceTimeout("shipped");

  const status = await h.waitForStatus("order", "o1", "errored");
  expect(status.error?.name).toBe("WaitTimeoutError");
  // #endregion
  const [charge] = (await h.history("order", "o1")).entries;
  expect(charge).toMatchObject({ attempts: [{ n: 1 }, { n: 2 }, { n: 3 }] });
});

test("the crash example finishes the step with a second runner", async () => {
  const h = await started();
  // #region crash
  h.mockStep("charge", () => new Promise(() => {}), { times: 1 }); // hangs
  await h.waitForStep("order", "o1", "charge", "running");

  await h.crashRunner(h.runner);
  h.addRunner();
  h.mockStep("charge", ({ attempt }) => `payment-${attempt}`);
  await h.clock.advance("1 minute"); // the lease of the crashed runner runs out

  const charge = await h.waitForStep("order", "o1", "charge");
  expect(charge.result).toBe("payment-2");
  // #endregion
});

test("the replay example finds a renamed step", async () => {
  const h = await started();
  h.mockStep("charge", "payment-1");
  await h.waitForStatus("order", "o1", "waiting");
  // #region export
  const history = JSON.stringify(await h.exportHistory("order", "o1")); // keep it in a file
  // #endregion

  class RenamedStep extends OrderWorkflow {
    override async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
      await step.do("charge the card", () => chargeCard(event.payload.email));
      return super.run(event, step);
    }
  }
  // #region replay
  await replay(JSON.parse(history), OrderWorkflow); // passes

  await expect(replay(JSON.parse(history), RenamedStep)).rejects.toThrow(
    'step 1 of 2 is recorded as do "charge", ' +
      'and the code calls do "charge the card" instead, which is not recorded',
  );
  // #endregion
});

test("the page quotes these examples", () => {
  const source = readFileSync(new URL(import.meta.url), "utf8");
  const page = readFileSync(new URL("../../../../docs/testing.md", import.meta.url), "utf8");
  const regions = source.matchAll(/^( *)\/\/ #region (\w+)\n(.*?)\n *\/\/ #endregion$/gms);
  const names = Array.from(regions, ([, indent = "", name, code = ""]) => {
    const lines = code
      .split("\n")
      .map((line) => line.slice(line.startsWith(indent) ? indent.length : 0));
    expect(page, name).toContain(`\n${lines.join("\n")}\n`);
    return name;
  });
  expect(names).toEqual(["workflow", "first", "failures", "crash", "export", "replay"]);
});
