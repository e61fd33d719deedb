// These are the examples of docs/workflows.md. Each region is quoted there word for word, which the last test
// checks.
import {
  createWorkflows,
  defineWorkflow,
  NonRetryableError,
  WorkflowEntrypoint,
  type Store,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { createHarness } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { examplesIn, regionsOf } from "./quoted.js";

interface Env {
  readonly users: { add(email: string): Promise<{ id: number; email: string }> };
  readonly mail: { send(to: string, what: string): Promise<void> };
}

const sent: string[] = [];
const env: Env = {
  users: { add: async (email) => ({ id: 7, email }) },
  mail: { send: async (to, what) => void sent.push(`${what} to ${to}`) },
};

// #region class
type Signup = { readonly email: string };

class SignupWorkflow extends WorkflowEntrypoint<Env, Signup> {
  async run(event: WorkflowEvent<Signup>, step: WorkflowStep) {
    const user = await step.do("create the user", () => this.env.users.add(event.payload.email));
    await step.sleep("first day", "1 day");
    await step.do("send tips", () => this.env.mail.send(user.email, "tips"));
    return user.id;
  }
}
// #endregion

export function registration(store: Store): unknown {
  // #region create
  const pawl = createWorkflows({
    workflows: { SIGNUP: { name: "signup", workflow: SignupWorkflow } },
    store,
    env, // what steps need; may also be a function of the bindings
  });
  // #endregion
  return pawl;
}

// #region schemas
const approval = defineWorkflow({
  name: "approval",
  params: z.object({ amount: z.number().positive() }),
  output: z.object({ approved: z.boolean() }),
  events: { decision: z.object({ ok: z.boolean() }) },
  async run(event, step) {
    if (event.payload.amount < 100) return { approved: true };
    const { payload } = await step.waitForEvent("decision", { type: "decision" });
    return { approved: payload.ok };
  },
});
// #endregion

class Declined extends Error {}

const charge = defineWorkflow({
  name: "charge",
  async run(event, step) {
    const bank = { pay: async (_options: object) => answers.shift() ?? { ok: true, status: 200 } };
    const card = "card";
    // #region do
    const config = {
      retries: { limit: 8, delay: "2 seconds", backoff: "exponential", maxDelay: "5 minutes" },
      timeout: "30 seconds",
    } as const;
    const payment = await step.do("charge", config, async ({ attempt, signal, instanceId }) => {
      const answer = await bank.pay({ card, signal, idempotencyKey: `${instanceId} charge` });
      if (answer.status === 402) throw new NonRetryableError("declined", "Declined");
      if (!answer.ok) throw new Error(`attempt ${attempt}: the bank said ${answer.status}`);
      return answer.status;
    });
    // #endregion
    // #region retryable
    const quick = { retries: { limit: 3, delay: "1 second", retryable: isTemporary } };
    const receipt = await step
      .do("print", quick, () => print(event.instanceId))
      .catch(() => "no receipt"); // the step has failed; the run goes on
    // #endregion
    return [payment, receipt];
  },
});

const answers: { ok: boolean; status: number }[] = [];
const isTemporary = (error: unknown): boolean => !(error instanceof Declined);
async function print(_id: string): Promise<string> {
  throw new Declined("no paper");
}

const invoice = defineWorkflow({
  name: "invoice",
  async run(_event, step) {
    // #region race
    const paid = step.waitForEvent("paid", { type: "paid", timeout: "30 days" });
    const outcome = await Promise.race([
      paid.then(() => "paid"),
      step.sleep("reminder", "7 days").then(() => "late"),
    ]);
    if (outcome === "late") await step.do("remind", () => env.mail.send("them", "a reminder"));
    await paid;
    // #endregion
    return outcome;
  },
});

// #region children
type Page = { readonly parent: string; readonly url: string };

class CrawlWorkflow extends WorkflowEntrypoint<unknown, readonly string[]> {
  async run(event: WorkflowEvent<readonly string[]>, step: WorkflowStep) {
    const parent = event.instanceId;
    for (const [n, url] of event.payload.entries()) {
      await step.do(`start ${n}`, async () => {
        await this.workflows["PAGE"]?.create({ params: { parent, url } });
      });
    }
    const titles: string[] = [];
    for (const n of event.payload.keys()) {
      const done = await step.waitForEvent<string>(`page ${n}`, {
        type: "page",
        timeout: "1 hour",
      });
      titles.push(done.payload);
    }
    return titles;
  }
}

class PageWorkflow extends WorkflowEntrypoint<unknown, Page> {
  async run(event: WorkflowEvent<Page>, step: WorkflowStep) {
    const title = await step.do("fetch", () => titleOf(event.payload.url));
    await step.do("tell the parent", async () => {
      const crawl = await this.workflows["CRAWL"]?.get(event.payload.parent);
      await crawl?.sendEvent({ type: "page", payload: title, id: event.instanceId });
    });
  }
}
// #endregion

async function titleOf(url: string): Promise<string> {
  return `title of ${url}`;
}

const workflows = {
  SIGNUP: { name: "signup", workflow: SignupWorkflow },
  APPROVAL: approval,
  CHARGE: charge,
  INVOICE: invoice,
  CRAWL: { name: "crawl", workflow: CrawlWorkflow },
  PAGE: { name: "page", workflow: PageWorkflow },
} as const;

async function opened() {
  const h = await createHarness({ workflows, env });
  onTestFinished(() => h.close());
  return h;
}

test("the class example runs to its end", async () => {
  const h = await opened();
  const instance = await h.workflows.SIGNUP.create({ params: { email: "ada@example.org" } });
  await h.runUntilIdle();
  await h.clock.advance("1 day");
  await h.runUntilIdle();
  expect(await instance.result()).toBe(7);
  expect(sent).toEqual(["tips to ada@example.org"]);
});

test("the schemas example refuses wrong params and gets its decision", async () => {
  const h = await opened();
  const wrong = h.workflows.APPROVAL.create({ params: { amount: -1 } });
  await expect(wrong).rejects.toMatchObject({ code: "INVALID_PARAMS" });
  const instance = await h.workflows.APPROVAL.create({ params: { amount: 500 } });
  await h.runUntilIdle();
  await instance.sendEvent({ type: "decision", payload: { ok: true } });
  await h.runUntilIdle();
  expect(await instance.result()).toEqual({ approved: true });
});

test("the do and retryable examples retry, catch and give up", async () => {
  const h = await opened();
  answers.push({ ok: false, status: 500 });
  const instance = await h.workflows.CHARGE.create();
  await h.runUntilIdle();
  await h.clock.advance("2 seconds");
  await h.runUntilIdle();
  expect(await instance.result()).toEqual([200, "no receipt"]);
  answers.push({ ok: false, status: 402 });
  const declined = await h.workflows.CHARGE.create();
  await h.runUntilIdle();
  expect(await declined.status()).toMatchObject({ error: { name: "Declined" } });
});

test("the race example sends a reminder", async () => {
  const h = await opened();
  const instance = await h.workflows.INVOICE.create();
  await h.runUntilIdle();
  await h.clock.advance("7 days");
  await h.runUntilIdle();
  await instance.sendEvent({ type: "paid" });
  await h.runUntilIdle();
  expect(await instance.result()).toBe("late");
  expect(sent.at(-1)).toBe("a reminder to them");
});

test("the control example pauses, keeps an event and resumes", async () => {
  const h = await opened();
  const pawl = h;
  await pawl.workflows.INVOICE.create({ id: "invoice-7" });
  await h.runUntilIdle();
  // #region control
  const instance = await pawl.workflows.INVOICE.get("invoice-7");
  await instance.pause(); // no step starts after the one that runs
  await instance.sendEvent({ type: "paid", id: "bank-4711" }); // kept
  await instance.resume(); // and delivered
  const { status } = await instance.status();
  // #endregion
  expect(status).toBe("queued");
  await h.runUntilIdle();
  expect(await instance.result()).toBe("paid");
});

test("the children example collects what its children send", async () => {
  const h = await opened();
  const instance = await h.workflows.CRAWL.create({ params: ["/a", "/b"] });
  await h.runUntilIdle();
  expect([...(await instance.result())].toSorted()).toEqual(["title of /a", "title of /b"]);
});

test("the page has these examples and no others", () => {
  const examples = regionsOf("packages/dispatcher-node/test/workflows-page.unit.test.ts");
  const [register] = regionsOf("packages/pawl/test-types/docs/register.ts");
  expect(new Set(examplesIn("docs/workflows.md"))).toEqual(new Set([...examples, register]));
});
