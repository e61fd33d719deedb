import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, HeldBody, stage } from "./stage.js";

export function runner(on: StoreFixture): void {
  describe("runner", () => {
    test("any number of ticks at once, in any number of processes, run every step once", async () => {
      const calls = new Map<string, number>();
      const s = await stage(
        on,
        async (event, step) => {
          for (const name of ["a", "b"]) {
            await step.do(name, () => {
              const key = `${event.instanceId} ${name}`;
              calls.set(key, (calls.get(key) ?? 0) + 1);
            });
            await step.sleep(`after ${name}`, 1);
          }
        },
        { runner: { concurrency: 7, ...evicting } },
      );
      const peer = await s.peer();
      const runners = [s.h.runner, s.addRunner(), peer.h.runner];
      const instances = await Promise.all(Array.from({ length: 20 }, () => s.create()));
      for (let n = 0; n < 12; n++) {
        await Promise.all(runners.flatMap((each) => [each.tick(), each.tick(), each.tick()]));
        await s.clock.advance(1);
      }
      for (const i of instances) expect(await i.status()).toMatchObject({ status: "complete" });
      expect([...calls.values()]).toEqual(Array(40).fill(1));
    });

    test("maxInstances bounds how many runs a tick takes", async () => {
      const s = await stage(on, () => "done");
      for (let n = 0; n < 5; n++) await s.create();
      expect(await s.h.tick({ maxInstances: 2 })).toEqual({ processed: 2, nextWakeInMs: 0 });
      expect(await s.h.tick({ maxInstances: 0 })).toMatchObject({ processed: 0 });
      expect(await s.h.tick()).toEqual({ processed: 3, nextWakeInMs: null });
    });

    test("maxSteps bounds how many bodies a tick starts, and the rest run later at no cost", async () => {
      const attempts: number[] = [];
      const s = await stage(on, async (_event, step) => {
        for (let n = 0; n < 5; n++) {
          await step.do(`step ${n}`, ({ attempt }) => void attempts.push(attempt));
        }
        return "done";
      });
      const [i, j] = [await s.create(), await s.create()];
      await s.h.tick({ maxSteps: 3 });
      expect(attempts.length).toBe(3);
      await s.h.tick({ maxSteps: 4 });
      expect(attempts.length).toBe(7);
      expect(await s.h.tick()).toMatchObject({ nextWakeInMs: null });
      expect(attempts).toEqual(Array(10).fill(1));
      for (const each of [i, j]) expect(await each.status()).toMatchObject({ output: "done" });
    });

    test("a tick reports how long it is until the next run is due", async () => {
      const s = await stage(on, (event, step) => step.sleep("nap", event.payload));
      expect(await s.h.tick()).toEqual({ processed: 0, nextWakeInMs: null });
      await s.create(60_000);
      await s.create(5_000);
      expect(await s.h.tick()).toEqual({ processed: 2, nextWakeInMs: 5_000 });
      await s.clock.advance(4_000);
      expect(await s.h.tick()).toEqual({ processed: 0, nextWakeInMs: 1_000 });
    });

    test("a slow step delays no other run: slots become free one by one", async () => {
      const slow = new HeldBody<string>();
      const s = await stage(
        on,
        (event, step) =>
          step.do("a", { timeout: "1 day" }, (context) =>
            event.payload === "slow" ? slow.body(context) : "quick",
          ),
        { runner: { concurrency: 2 } },
      );
      const first = await s.create("slow");
      const turn = s.turn();
      await slow.entered.passed;
      for (let n = 0; n < 5; n++) {
        const quick = await s.create("quick");
        await s.h.tick();
        expect(await quick.status()).toEqual({ status: "complete", output: "quick" });
      }
      slow.result.open("slow");
      await turn;
      expect(await first.status()).toEqual({ status: "complete", output: "slow" });
    });

    test("a runner never has more runs at once than its concurrency", async () => {
      const held: HeldBody[] = [];
      const s = await stage(
        on,
        (_event, step) => {
          const body = new HeldBody();
          return step.do("a", { timeout: "1 day" }, (context) => {
            held.push(body);
            return body.body(context);
          });
        },
        { runner: { concurrency: 3 } },
      );
      for (let n = 0; n < 8; n++) await s.create();
      const turn = s.turn();
      await s.clock.advance(1);
      expect(held.length).toBe(3);
      expect(await s.h.tick()).toMatchObject({ processed: 0 });
      for (const body of held) body.result.open(1);
      await turn;
      expect(s.h.runner.freeSlots).toBe(3);
    });

    test("of the runs that resume, the one that fell due first goes first", async () => {
      const order: string[] = [];
      const s = await stage(on, async (event, step) => {
        if (event.payload.startsWith("old")) await step.sleep("nap", event.payload.length * 1_000);
        await step.do("a", () => void order.push(event.payload));
      });
      await s.start("old long nap");
      await s.start("old nap");
      await s.create("new");
      await s.clock.advance("1 minute");
      // With one slot at a time there would be no share for new runs.
      for (let n = 0; n < 3; n++) await s.h.tick({ maxInstances: 2 });
      expect(order.indexOf("old nap")).toBeLessThan(order.indexOf("old long nap"));
      expect(order).toHaveLength(3);
    });

    test("runs that resume cannot keep new ones out for ever", async () => {
      let began = 0;
      const s = await stage(
        on,
        async (event, step) => {
          if (event.payload === "new") return step.do("a", () => ++began);
          for (let n = 0; ; n++) await step.sleep(`nap ${n}`, 1);
        },
        { runner: { concurrency: 5 } },
      );
      for (let n = 0; n < 20; n++) await s.create("busy");
      await s.h.runUntilIdle();
      const i = await s.create("new");
      await s.clock.advance(1);
      await s.h.tick();
      expect(began).toBe(1);
      expect(await i.status()).toMatchObject({ status: "complete" });
    });

    test("a workflow that a runner does not know is left for one that does, at no cost", async () => {
      const s = await stage(on, { MAIN: () => "main", OTHER: () => "other" });
      const stranger = await s.peer({ OTHER: () => "other" });
      const i = await s.create();
      const other = await s.workflows["OTHER"]?.create({ id: "o" });
      expect(await stranger.h.tick()).toEqual({ processed: 1, nextWakeInMs: null });
      expect(await stranger.h.tick()).toEqual({ processed: 0, nextWakeInMs: null });
      expect(await other?.status()).toEqual({ status: "complete", output: "other" });
      expect(await i.status()).toEqual({ status: "queued" });
      await s.h.tick();
      expect(await i.status()).toEqual({ status: "complete", output: "main" });
    });

    test("a workflow that a runner does not know is reported once, within a minute", async () => {
      const s = await stage(on, { MAIN: () => "main", OTHER: () => "other", NEW: () => "new" });
      const stranger = await s.peer({ OTHER: () => "other" });
      const unknown = (): object[] =>
        s.logs.filter(({ event }) => event === "workflow.unknown").map(({ fields }) => fields);
      await s.create();
      await stranger.h.tick();
      expect(unknown()).toEqual([{ workflow: "main", queue: "default" }]);
      expect(s.logs.find(({ event }) => event === "workflow.unknown")?.level).toBe("warn");
      await s.workflows["NEW"]?.create({ id: "n" });
      await s.clock.advance("59 seconds");
      await stranger.h.tick();
      expect(unknown().length).toBe(1);
      await s.clock.advance("1 second");
      await stranger.h.tick();
      await s.clock.advance("10 minutes");
      await stranger.h.tick();
      expect(unknown().slice(1)).toEqual([{ workflow: "new", queue: "default" }]);
    });

    test("a runner whose search for unknown workflows fails works on", async () => {
      const s = await stage(on, () => "done", {
        around: (store) =>
          new Proxy(store, {
            get: (target, name) =>
              name === "unknownLanes"
                ? () => Promise.reject(new Error("no"))
                : (Reflect.get(target, name) as unknown),
          }),
      });
      const i = await s.create();
      expect(await s.h.tick()).toEqual({ processed: 1, nextWakeInMs: null });
      expect(await i.status()).toEqual({ status: "complete", output: "done" });
    });

    test("a parked run can be resumed by any runner, and by the first one again without harm", async () => {
      const owners: string[] = [];
      const s = await stage(on, async (_event, step) => {
        for (let n = 0; n < 4; n++) {
          await step.do(`step ${n}`, () => void owners.push("x"));
          await step.sleep(`nap ${n}`, 1_000);
        }
        return "done";
      });
      const other = s.addRunner();
      const i = await s.create();
      for (let n = 0; n < 5; n++) {
        await (n % 2 === 0 ? s.h.runner : other).tick();
        await s.clock.advance(1_000);
      }
      expect(await i.status()).toEqual({ status: "complete", output: "done" });
      expect(owners.length).toBe(4);
    });

    test("a run that awaits something other than a step keeps its slot, and is reported after a while", async () => {
      const s = await stage(on, () => new Promise(() => {}), { runner: { concurrency: 2 } });
      const i = await s.create();
      void s.turn();
      await s.clock.advance("61 seconds");
      expect(s.h.runner.freeSlots).toBe(1);
      expect(s.logs).toContainEqual({
        level: "warn",
        event: "run.awaitsNoStep",
        fields: { workflow: "main", id: i.id, runNumber: 1 },
      });
    });
  });
}
