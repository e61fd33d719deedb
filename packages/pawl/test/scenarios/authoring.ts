import { type } from "arktype";
import {
  defineRegistry,
  defineWorkflow,
  WorkflowEntrypoint,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, open, stage } from "./stage.js";

type Env = { readonly greeting: string };

class Greeter extends WorkflowEntrypoint<Env, { name: string }> {
  // `env` is set before field initialisers run, as on Cloudflare.
  readonly prefix = `${this.env.greeting}, `;

  async run(event: WorkflowEvent<{ name: string }>, step: WorkflowStep): Promise<string> {
    const text = await step.do("greet", () => this.prefix + event.payload.name);
    await step.sleep("nap", "1 hour");
    return text;
  }
}

// A workflow as Cloudflare's documentation shows it. Only the import line differs.
type Params = { email: string; metadata: Record<string, string> };
class CloudflareWorkflow extends WorkflowEntrypoint<{ KV: Map<string, string> }, Params> {
  async run(event: WorkflowEvent<Params>, step: WorkflowStep) {
    const files = await step.do("my first step", async () => {
      return { files: ["doc_7392_rev3.pdf", "report_x29_final.pdf"], user: event.payload.email };
    });
    for (const file of files.files) {
      // The same name in a loop: Cloudflare counts such steps.
      await step.do("archive", async () => {
        this.env.KV.set(file, (this.env.KV.get(file) ?? "") + "x");
      });
    }
    await step.sleep("wait on something", "1 minute");
    const approval = await step.waitForEvent<{ approved: boolean }>("request-approval", {
      type: "approval",
      timeout: "24 hours",
    });
    return await step.do(
      "make a call to write that could maybe, just might, fail",
      { retries: { limit: 5, delay: "5 second", backoff: "exponential" }, timeout: "15 minutes" },
      async () => ({ ok: approval.payload.approved, at: event.timestamp }),
    );
  }
}

const libraries = {
  zod: {
    params: z.object({ n: z.string().transform(Number), tag: z.string().default("none") }),
    output: z.object({ n: z.number().max(100) }),
    event: z.object({ ok: z.boolean() }),
  },
  valibot: {
    params: v.object({
      n: v.pipe(v.string(), v.transform(Number)),
      tag: v.optional(v.string(), "none"),
    }),
    output: v.object({ n: v.pipe(v.number(), v.maxValue(100)) }),
    event: v.object({ ok: v.boolean() }),
  },
  arktype: {
    params: type({ n: type("string").pipe(Number), tag: "string = 'none'" }),
    output: type({ n: "number <= 100" }),
    event: type({ ok: "boolean" }),
  },
} as const;

export function authoring(on: StoreFixture): void {
  describe("authoring", () => {
    test("a class gets its env, its event and its steps", async () => {
      const { h } = await open(on, {
        workflows: { GREETER: { name: "greeter", workflow: Greeter } },
        env: { greeting: "Hello" },
      });
      const i = await h.workflows.GREETER.create({ params: { name: "Ada" } });
      await h.runUntilIdle();
      await h.clock.advance("1 hour");
      await h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: "Hello, Ada" });
    });

    test("the event names the instance, the time and the run, and is the same on every replay", async () => {
      const seen: unknown[] = [];
      const s = await stage(
        on,
        async (event, step) => {
          seen.push({ ...event });
          await step.sleep("nap", "1 hour");
        },
        { runner: evicting },
      );
      const createdAt = new Date(s.clock.now());
      await s.run({ n: 1n });
      expect(seen.length).toBe(2);
      for (const event of seen) {
        expect(event).toEqual({
          payload: { n: 1n },
          timestamp: createdAt,
          instanceId: "i1",
          workflowName: "main",
          runNumber: 1,
        });
      }
    });

    test("env can be built from the workflow bindings", async () => {
      const PING = defineWorkflow({ name: "ping", run: () => "pong" });
      const CALLER = defineWorkflow({
        name: "caller",
        run: (_event, step, { env }: { env: { ping: () => Promise<string> } }) =>
          step.do("ping", () => env.ping()),
      });
      const { h } = await open(on, {
        workflows: { PING, CALLER },
        env: (workflows) => ({
          ping: async () => (await workflows.PING.create({ id: "pinged" })).id,
        }),
      });
      const i = await h.workflows.CALLER.create();
      await h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: "pinged" });
    });

    test("a Cloudflare workflow runs after changing only its import line", async () => {
      const KV = new Map<string, string>();
      const { h } = await open(on, {
        workflows: defineRegistry({ MY: { name: "my-workflow", workflow: CloudflareWorkflow } }),
        env: { KV },
        repeatedStepNames: "counted",
        runner: evicting,
      });
      const params = { email: "a@b.c", metadata: {} };
      const i = await h.workflows.MY.create({ id: "cf", params });
      const createdAt = new Date(h.clock.now());
      await h.runUntilIdle();
      await h.clock.advance("1 minute");
      await h.runUntilIdle();
      await i.sendEvent({ type: "approval", payload: { approved: true } });
      await h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: { ok: true, at: createdAt } });
      expect([...KV.values()]).toEqual(["x", "x"]);
    });

    test("refuses an id that is taken or malformed, and generates one when none is given", async () => {
      const s = await stage(on, () => 1);
      await s.create(undefined, "same");
      await expect(s.create(undefined, "same")).rejects.toMatchObject({
        code: "INSTANCE_ID_ALREADY_EXISTS",
      });
      const main = s.workflows["MAIN"];
      const ids = [await main?.create(), await main?.create()].map((each) => each?.id);
      expect(new Set(ids).size).toBe(2);
      await expect(main?.create({ id: "-bad" })).rejects.toMatchObject({
        code: "INVALID_INSTANCE_ID",
      });
    });

    test("createBatch creates the new instances and leaves out those that exist", async () => {
      const s = await stage(on, (event) => event.payload);
      await s.create(0, "b");
      const batch = ["a", "b", "c"].map((id) => ({ id, params: id }));
      const created = await s.workflows["MAIN"]?.createBatch(batch);
      expect(created?.map(({ id }) => id)).toEqual(["a", "c"]);
      await s.h.runUntilIdle();
      for (const i of created ?? []) expect(await i.status()).toMatchObject({ output: i.id });
    });

    test("an instance created in a user's transaction exists once that transaction commits", async () => {
      const s = await stage(on, () => "ran");
      const main = s.workflows["MAIN"];
      const undone = await s.database.begin();
      await main?.create({ id: "undone" }, { tx: undone.tx });
      await undone.rollback();
      await expect(main?.get("undone")).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
      const kept = await s.database.begin();
      await main?.create({ id: "kept" }, { tx: kept.tx });
      await kept.commit();
      await s.h.runUntilIdle();
      expect(await (await main?.get("kept"))?.status()).toMatchObject({ output: "ran" });
    });
  });

  describe.each(Object.entries(libraries))("schemas of %s", (_library, schemas) => {
    const registry = (run: (event: WorkflowEvent<any>, step: WorkflowStep<any>) => unknown) => ({
      MAIN: defineWorkflow({
        name: "main",
        params: schemas.params,
        output: schemas.output,
        events: { approval: schemas.event },
        run: run as never,
      }),
    });
    const good = { n: "7" };

    async function opened(run: Parameters<typeof registry>[0]) {
      const { h, database } = await open(on, { workflows: registry(run) as never });
      const { MAIN } = h.workflows as unknown as Record<
        "MAIN",
        Awaited<ReturnType<typeof stage>>["workflows"][string]
      >;
      return { h, MAIN, database };
    }

    test("create accepts the schema's input, and the code receives its output", async () => {
      let payload: unknown;
      const { h, MAIN } = await opened((event) => ({
        n: ((payload = event.payload), event.payload.n),
      }));
      const i = await MAIN.create({ params: good });
      await h.runUntilIdle();
      expect(payload).toEqual({ n: 7, tag: "none" });
      expect(await i.status()).toEqual({ status: "complete", output: { n: 7 } });
    });

    test("invalid params are refused with INVALID_PARAMS and the offending field, and leave no row", async () => {
      const { MAIN } = await opened(() => ({ n: 1 }));
      const create = MAIN.create({ id: "bad", params: { n: 7 } });
      await expect(create).rejects.toMatchObject({ code: "INVALID_PARAMS", status: 400 });
      await expect(create).rejects.toThrow("n");
      await expect(MAIN.get("bad")).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
      const batch = MAIN.createBatch([
        { id: "fine", params: good },
        { id: "bad2", params: {} },
      ]);
      await expect(batch).rejects.toMatchObject({ code: "INVALID_PARAMS" });
      await expect(MAIN.get("fine")).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    });

    test("an output that does not match its schema errors the instance", async () => {
      const { h, MAIN } = await opened(() => ({ n: 101 }));
      const i = await MAIN.create({ params: good });
      await h.runUntilIdle();
      expect(await i.status()).toMatchObject({
        status: "errored",
        error: { name: "ValidationError" },
      });
      expect((await i.status()).error?.message).toContain("n");
    });

    test("a payload that does not match its schema is refused with INVALID_EVENT_PAYLOAD and leaves no event", async () => {
      const { h, MAIN } = await opened(async (_event, step) => {
        const { payload } = await step.waitForEvent("wait", { type: "approval" });
        return { n: (payload as { ok: boolean }).ok ? 1 : 0 };
      });
      const i = await MAIN.create({ params: good });
      await h.runUntilIdle();
      await expect(i.sendEvent({ type: "approval", payload: { ok: "yes" } })).rejects.toMatchObject(
        {
          code: "INVALID_EVENT_PAYLOAD",
        },
      );
      await h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "waiting" });
      await i.sendEvent({ type: "approval", payload: { ok: true } });
      await h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: { n: 1 } });
    });
  });
}
