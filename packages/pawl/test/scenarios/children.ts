import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { HeldBody, memories, stage } from "./stage.js";

const LEASE_MS = 30_000;

export function children(on: StoreFixture): void {
  describe.each(memories)("children, %s", (_, runner) => {
    test("a parent goes on at once, while its child runs on its own with its params", async () => {
      const s = await stage(
        on,
        {
          PARENT: async (event, step, { workflows }) => {
            const id = await step.do("start child", async () => {
              const child = await workflows["CHILD"]?.create({
                id: `child-of-${event.instanceId}`,
                params: { from: event.instanceId },
              });
              return child?.id;
            });
            return step.do("continue", () => id);
          },
          CHILD: async (event, step) => {
            await step.sleep("nap", "1 day");
            return event.payload;
          },
        },
        { runner },
      );
      const parent = await s.start();
      expect(await parent.status()).toEqual({ status: "complete", output: "child-of-i1" });
      const child = await s.workflows["CHILD"]?.get("child-of-i1");
      expect(await child?.status()).toEqual({ status: "waiting" });
      await s.pass("1 day");
      expect(await child?.status()).toEqual({ status: "complete", output: { from: "i1" } });
    });

    test("a child of a retried step is created once, with or without an id", async () => {
      const seen: (string | undefined)[][] = [];
      const s = await stage(
        on,
        {
          PARENT: (_event, step, { workflows }) =>
            step.do("start", { retries: { limit: 3, delay: 1_000 } }, async ({ attempt }) => {
              const named = await workflows["CHILD"]?.create({ id: "named" });
              const first = await workflows["CHILD"]?.create();
              const second = await workflows["CHILD"]?.create();
              seen.push([named?.id, first?.id, second?.id]);
              if (attempt < 3) throw new Error("after the children");
            }),
          CHILD: () => "grown up",
        },
        { runner },
      );
      expect(await s.run()).toMatchObject({ status: "complete" });
      expect(seen.length).toBe(3);
      expect(new Set(seen[0]).size).toBe(3);
      expect(seen[1]).toEqual(seen[0]);
      expect(seen[2]).toEqual(seen[0]);
      expect((await s.ids("child")).toSorted()).toEqual((seen[0] as string[]).toSorted());
    });

    test("a retried step finds its named children in any order, but may not create one of them twice", async () => {
      const s = await stage(
        on,
        {
          PARENT: (_event, step, { workflows }) =>
            step.do("start", { retries: { limit: 1, delay: 1_000 } }, async ({ attempt }) => {
              const ids = attempt === 1 ? ["a", "b"] : ["b", "c", "a"];
              for (const id of ids) await workflows["CHILD"]?.create({ id });
              if (attempt === 1) throw new Error("after the children");
              await workflows["CHILD"]?.create({ id: "b" });
            }),
          CHILD: () => "grown up",
        },
        { runner },
      );
      expect(await s.run()).toMatchObject({
        status: "errored",
        error: { code: "INSTANCE_ID_ALREADY_EXISTS", message: expect.stringContaining('"b"') },
      });
      expect((await s.ids("child")).toSorted()).toEqual(["a", "b", "c"]);
    });

    test("a child created outside of steps is created once, however often the code is replayed", async () => {
      const s = await stage(
        on,
        {
          PARENT: async (_event, step, { workflows }) => {
            await workflows["CHILD"]?.create();
            await step.sleep("nap", 1_000);
            await workflows["CHILD"]?.create();
            await step.sleep("nap again", 1_000);
            return "done";
          },
          CHILD: () => 1,
        },
        { runner },
      );
      expect(await s.output()).toBe("done");
      expect((await s.ids("child")).length).toBe(2);
    });

    test("a child can answer its parent with an event", async () => {
      const s = await stage(
        on,
        {
          PARENT: async (event, step, { workflows }) => {
            await step.do("start", async () => {
              await workflows["CHILD"]?.create({ id: "kid", params: event.instanceId });
            });
            const { payload } = await step.waitForEvent<number>("wait", { type: "answer" });
            return payload;
          },
          CHILD: async (event, step, { workflows }) => {
            await step.sleep("think", "1 hour");
            await step.do("answer", async () => {
              const parent = await workflows["PARENT"]?.get(event.payload);
              await parent?.sendEvent({ type: "answer", payload: 42 });
            });
          },
        },
        { runner },
      );
      expect(await s.output()).toBe(42);
    });
  });

  describe("children", () => {
    test("a crash between the child's creation and the step's result creates no second child", async () => {
      const dead = new HeldBody();
      const ids: (string | undefined)[] = [];
      const s = await stage(on, {
        PARENT: (_event, step, { workflows }) =>
          step.do("start", async (context) => {
            const child = await workflows["CHILD"]?.create();
            ids.push(child?.id);
            if (context.attempt === 1) await dead.body(context);
            return child?.id;
          }),
        CHILD: () => 1,
      });
      const parent = await s.create();
      void s.turn();
      await dead.entered.passed;
      await s.h.crashRunner(s.h.runner);
      s.addRunner();
      await s.clock.advance(LEASE_MS);
      expect(await s.toEnd(parent)).toEqual({ status: "complete", output: ids[0] });
      expect(ids).toEqual([ids[0], ids[0]]);
      expect(await s.ids("child")).toEqual([ids[0]]);
    });

    test("different steps and different parents have children of their own", async () => {
      const s = await stage(on, {
        PARENT: (_event, step, { workflows }) =>
          Promise.all(
            ["a", "b"].map((name) =>
              step.do(name, async () => {
                await Promise.resolve();
                return (await workflows["CHILD"]?.create({ params: name }))?.id;
              }),
            ),
          ),
        CHILD: (event) => event.payload,
      });
      const outputs = [await s.output(), await s.output()].flat();
      expect(new Set(outputs).size).toBe(4);
      expect((await s.ids("child")).length).toBe(4);
    });

    test("a child's id that is already taken is an error, and retried like any other", async () => {
      let attempts = 0;
      const s = await stage(on, {
        PARENT: (_event, step, { workflows }) =>
          step
            .do("start", { retries: { limit: 1, delay: 1_000 } }, async () => {
              attempts += 1;
              await workflows["CHILD"]?.create({ id: "taken" });
            })
            .catch((error: { code?: string }) => error.code),
        CHILD: () => 1,
      });
      await s.workflows["CHILD"]?.create({ id: "taken" });
      expect(await s.output()).toBe("INSTANCE_ID_ALREADY_EXISTS");
      expect(attempts).toBe(2);
    });

    test("a restarted parent creates new children", async () => {
      const s = await stage(on, {
        PARENT: (_event, step, { workflows }) =>
          step.do("start", async () => (await workflows["CHILD"]?.create())?.id),
        CHILD: () => 1,
      });
      const parent = await s.start();
      await parent.restart();
      await s.toEnd(parent);
      expect((await s.ids("child")).length).toBe(2);
    });

    test("a workflow may create instances of itself", async () => {
      const s = await stage(on, {
        MAIN: async (event, step, { workflows }) => {
          if (event.payload === 0) return "leaf";
          await step.do("next", async () => {
            await workflows["MAIN"]?.create({ params: event.payload - 1 });
          });
          return event.payload;
        },
      });
      await s.start(3);
      expect((await s.ids("main")).length).toBe(4);
    });

    test("the children of a batch are created once, too", async () => {
      const s = await stage(on, {
        PARENT: (_event, step, { workflows }) =>
          step.do("start", { retries: { limit: 1, delay: 1 } }, async ({ attempt }) => {
            const batch = [{ id: "a" }, { id: "b" }, { id: "a" }];
            const created = await workflows["CHILD"]?.createBatch(batch);
            if (attempt === 1) throw new Error("after the batch");
            return created?.map(({ id }) => id);
          }),
        CHILD: () => 1,
      });
      expect(await s.output()).toEqual(["a", "b"]);
      expect(await s.ids("child")).toEqual(["a", "b"]);
    });
  });
}
