import { InstanceTerminatedError } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { Gate, HeldBody, macrotasks, memories, stage, type Instance, type Stage } from "./stage.js";
import { holding } from "./store-wrappers.js";

const statusOf = async (instance: Instance): Promise<string> => (await instance.status()).status;

/** A run whose first body is executing. */
async function held(on: StoreFixture) {
  const body = new HeldBody<string>();
  const entered: string[] = [];
  const s = await stage(on, async (_event, step) => {
    const a = await step.do(
      "a",
      { timeout: "1 day" },
      (context) => (entered.push("a"), body.body(context)),
    );
    const b = await step.do("b", () => (entered.push("b"), "b"));
    return [a, b];
  });
  const i = await s.create();
  const turn = s.turn();
  await body.entered.passed;
  return { s, i, turn, body, entered };
}

/** The same instance, reached from another process. */
async function elsewhere(s: Stage, { id }: Instance): Promise<Instance> {
  const peer = await s.peer();
  return (await peer.workflows["MAIN"]?.get(id)) as Instance;
}

export function control(on: StoreFixture): void {
  describe.each(memories)("control, %s", (_, runner) => {
    test("a queued instance pauses at once, and runs only after resume", async () => {
      let calls = 0;
      const s = await stage(on, (_event, step) => step.do("a", () => ++calls), { runner });
      const i = await s.create();
      await i.pause();
      expect(await i.status()).toEqual({ status: "paused" });
      await s.pass("1 hour");
      expect(calls).toBe(0);
      await i.resume();
      expect(await i.status()).toEqual({ status: "queued" });
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: 1 });
    });

    test("a waiting instance pauses at once, and a timer that falls due meanwhile fires after resume", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          await step.sleep("nap", "1 minute");
          return step.do("woke", () => s.clock.now());
        },
        { runner },
      );
      const i = await s.start();
      await i.pause();
      expect(await i.status()).toEqual({ status: "paused" });
      await s.pass("1 hour");
      expect(await i.status()).toEqual({ status: "paused" });
      await i.resume();
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: s.clock.now() });
    });

    test.each(["pause", "terminate", "restart"] as const)(
      "no body starts in the process that was asked to %s",
      async (verb) => {
        const started: number[] = [];
        const [gate, look] = [new Gate(), holding("poll", "request")];
        const s = await stage(
          on,
          async (event, step) => {
            await gate.passed;
            return step.do("a", () => void started.push(event.runNumber));
          },
          { around: look.around },
        );
        // A runner that serves starts at once what is created in its process.
        await s.h.tick();
        s.h.runner.serve(() => {});
        const i = await s.create();
        look.arm();
        await i[verb]();
        gate.open();
        await look.reached;
        await macrotasks(10);
        expect(started).toEqual([]);
        await look.letGo();
        await s.h.runUntilIdle();
        expect(started).toEqual(verb === "restart" ? [2] : []);
        const expected = { pause: "paused", terminate: "terminated", restart: "complete" };
        expect(await statusOf(i)).toBe(expected[verb]);
      },
    );

    test("a timer that is not yet due at the resume keeps its time", async () => {
      const s = await stage(on, (_event, step) => step.sleep("nap", "1 hour"), { runner });
      const i = await s.start();
      await i.pause();
      await s.pass("30 minutes");
      await i.resume();
      await s.pass(30 * 60_000 - 1);
      expect(await statusOf(i)).toBe("waiting");
      await s.pass(1);
      expect(await statusOf(i)).toBe("complete");
    });

    test("events sent while paused are delivered right after resume, in order", async () => {
      const s = await stage(
        on,
        async (_event, step) => {
          const a = await step.waitForEvent("a", { type: "go" });
          const b = await step.waitForEvent("b", { type: "go" });
          return [a.payload, b.payload];
        },
        { runner },
      );
      const i = await s.start();
      await i.pause();
      await i.sendEvent({ type: "go", payload: 1 });
      await i.sendEvent({ type: "go", payload: 2 });
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "paused" });
      await i.resume();
      await s.h.runUntilIdle();
      expect(await i.status()).toEqual({ status: "complete", output: [1, 2] });
    });

    test.each([
      ["in time", 59_000, "event"],
      ["too late", 61_000, "WaitTimeoutError"],
    ])(
      "a deadline keeps counting while the run is paused: an event sent %s",
      async (_what, sentAfter, outcome) => {
        const s = await stage(
          on,
          (_event, step) =>
            step.waitForEvent("wait", { type: "go", timeout: "1 minute" }).then(
              () => "event",
              (error: Error) => error.name,
            ),
          { runner },
        );
        const i = await s.start();
        await i.pause();
        await s.pass(sentAfter);
        await i.sendEvent({ type: "go" });
        await s.pass("1 hour");
        await i.resume();
        await s.h.runUntilIdle();
        expect(await i.status()).toEqual({ status: "complete", output: outcome });
      },
    );

    test("restart begins a new run, and the old run stays readable with its own events", async () => {
      const s = await stage(
        on,
        async (event, step) => {
          const n = await step.do("n", () => event.runNumber * 10);
          const { payload } = await step.waitForEvent("wait", { type: "go" });
          return [n, payload];
        },
        { runner },
      );
      const i = await s.start("params");
      await i.sendEvent({ type: "unread", payload: "old" });
      await i.restart();
      expect(await i.status()).toEqual({ status: "queued" });
      await s.h.runUntilIdle();
      await i.sendEvent({ type: "go", payload: "new" });
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: [20, "new"] });
      expect(await s.history(i)).toMatchObject({
        runNumber: 2,
        runs: [{ runNumber: 2 }, { runNumber: 1 }],
      });
      expect(await s.steps(i, 1)).toMatchObject([{ name: "n", result: 10 }, { name: "wait" }]);
      expect(await s.events(i, 1)).toMatchObject([{ payload: "old" }]);
      expect(await s.events(i, 2)).toMatchObject([{ payload: "new" }]);
    });
  });

  describe("control", () => {
    test("a pause while a body runs shows waitingForPause, then paused with the body's result stored", async () => {
      const { s, i, turn, body, entered } = await held(on);
      await i.pause();
      expect(await i.status()).toEqual({ status: "waitingForPause" });
      await i.pause();
      expect(await i.status()).toEqual({ status: "waitingForPause" });
      body.result.open("finished");
      await turn;
      expect(await i.status()).toEqual({ status: "paused" });
      expect(await s.steps(i)).toMatchObject([
        { name: "a", status: "completed", result: "finished" },
      ]);
      await s.pass("1 hour");
      expect(entered).toEqual(["a"]);
      await i.resume();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: ["finished", "b"] });
      expect(entered).toEqual(["a", "b"]);
    });

    test("a pause requested in another process takes effect with the store's next answer", async () => {
      const { s, i, turn, body, entered } = await held(on);
      await (await elsewhere(s, i)).pause();
      body.result.open("finished");
      await turn;
      expect(await i.status()).toEqual({ status: "paused" });
      expect(entered).toEqual(["a"]);
    });

    test("an event sent from another process while the last body runs keeps the run from parking", async () => {
      const body = new HeldBody<string>();
      const s = await stage(on, async (_event, step) => {
        await step.do("a", (context) => body.body(context));
        return (await step.waitForEvent("wait", { type: "go", timeout: "1 hour" })).payload;
      });
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      await (await elsewhere(s, i)).sendEvent({ type: "go", payload: "at once" });
      body.result.open("finished");
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "at once" });
    });

    test("a pause between two attempts of a step costs no attempt and keeps the first error", async () => {
      const body = new HeldBody<string>();
      const s = await stage(on, (_event, step) =>
        step.do("a", { retries: { limit: 1, delay: 1_000 } }, (context) =>
          context.attempt === 1 ? body.body(context) : "second",
        ),
      );
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      await i.pause();
      body.result.fail(new Error("first"));
      await turn;
      expect(await i.status()).toEqual({ status: "paused" });
      await s.pass("1 hour");
      expect(await s.steps(i)).toMatchObject([
        { attempts: [{ n: 1, error: { message: "first" } }] },
      ]);
      await i.resume();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "second" });
    });

    test("resume while a pause is pending cancels it", async () => {
      const { s, i, turn, body } = await held(on);
      await i.pause();
      await i.resume();
      expect(await i.status()).toEqual({ status: "running" });
      body.result.open("a");
      await turn;
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: ["a", "b"] });
    });

    test("a run that ends while a pause is pending completes", async () => {
      const body = new HeldBody<string>();
      const s = await stage(on, (_event, step) => step.do("last", body.body));
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      await i.pause();
      body.result.open("done");
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "done" });
    });

    test("resuming an instance that is not paused changes nothing", async () => {
      const s = await stage(on, (_event, step) => step.sleep("nap", "1 hour"));
      const i = await s.start();
      await i.resume();
      expect(await i.status()).toEqual({ status: "waiting" });
      await s.toEnd(i);
      await i.resume().catch(() => {});
      expect(await statusOf(i)).toBe("complete");
    });

    test.each(["pause", "terminate"] as const)(
      "%s of an ended instance is refused",
      async (verb) => {
        const s = await stage(on, (event) => {
          if (event.payload === "fail") throw new Error("no");
        });
        for (const params of ["fail", "succeed"]) {
          const i = await s.start(params);
          await expect(i[verb]()).rejects.toMatchObject({ code: "INSTANCE_TERMINAL" });
        }
        const ended = await s.create();
        await ended.terminate();
        await expect(ended[verb]()).rejects.toMatchObject({ code: "INSTANCE_TERMINAL" });
        await expect(ended.sendEvent({ type: "x" })).rejects.toMatchObject({
          code: "INSTANCE_TERMINAL",
        });
      },
    );

    test("getting an instance that does not exist is refused", async () => {
      const s = await stage(on, () => 1);
      const unknown = s.workflows["MAIN"]?.get("nobody");
      await expect(unknown).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    });

    test.each(["queued", "waiting", "paused"])(
      "terminate ends a %s instance for good",
      async (state) => {
        let calls = 0;
        const s = await stage(on, async (_event, step) => {
          await step.sleep("nap", "1 hour");
          await step.do("after", () => ++calls);
        });
        const i = await s.create();
        if (state !== "queued") await s.h.runUntilIdle();
        if (state === "paused") await i.pause();
        expect(await statusOf(i)).toBe(state);
        await i.terminate();
        expect(await i.status()).toEqual({ status: "terminated" });
        await s.pass("1 day");
        expect(calls).toBe(0);
        await expect(i.result({ timeout: 0 })).rejects.toThrow(InstanceTerminatedError);
      },
    );

    test.each([
      ["in the same process (at once)", false],
      ["in another process (within a heartbeat)", true],
    ])(
      "terminate called %s fires the running body's signal and drops its result",
      async (_, far) => {
        const { s, i, turn, body, entered } = await held(on);
        // By now the step's row says that it runs, so no commit is pending that would bring the news.
        await s.clock.advance(10_000);
        await (far ? await elsewhere(s, i) : i).terminate();
        expect(await i.status()).toEqual({ status: "terminated" });
        await s.clock.advance(far ? 10_000 : 0);
        expect(body.signal?.aborted).toBe(true);
        body.result.open("late");
        await turn;
        await s.pass("1 hour");
        expect(await i.status()).toEqual({ status: "terminated" });
        expect(entered).toEqual(["a"]);
        for (const step of await s.steps(i)) expect(step.result).toBeUndefined();
      },
    );

    test("restart during a body fires its signal, and its late result lands in neither run", async () => {
      const old = new HeldBody<string>();
      const s = await stage(on, (event, step) =>
        step.do("a", { timeout: "1 day" }, (context) =>
          event.runNumber === 1 ? old.body(context) : "new",
        ),
      );
      const i = await s.create();
      const turn = s.turn();
      await old.entered.passed;
      await i.restart();
      await s.clock.advance(0);
      expect(old.signal?.aborted).toBe(true);
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "new" });
      old.result.open("late");
      await turn;
      await s.pass("1 hour");
      expect(await i.status()).toEqual({ status: "complete", output: "new" });
      expect((await s.steps(i, 2)).map(({ result }) => result)).toEqual(["new"]);
      for (const step of await s.steps(i, 1)) expect(step.result).toBeUndefined();
    });

    test("the turn of a run that was restarted in another process ends when the new run begins here", async () => {
      const old = new HeldBody();
      const s = await stage(on, (event, step) =>
        step.do("a", { timeout: "1 day" }, (context) =>
          event.runNumber === 1 ? old.body(context) : "new",
        ),
      );
      const i = await s.create();
      const turn = s.turn();
      await old.entered.passed;
      await (await elsewhere(s, i)).restart();
      await s.h.tick();
      expect(old.signal?.aborted).toBe(true);
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "new" });
    });

    test.each(["complete", "errored", "terminated", "paused"])(
      "a %s instance can be restarted",
      async (state) => {
        let runs = 0;
        const s = await stage(on, async (event, step) => {
          runs += 1;
          if (event.runNumber === 2) return [event.payload, event.runNumber];
          if (state === "errored") throw new Error("no");
          if (state !== "complete") await step.sleep("nap", "1 hour");
          return "first";
        });
        const i = await s.start("the params");
        if (state === "terminated") await i.terminate();
        if (state === "paused") await i.pause();
        expect(await statusOf(i)).toBe(state);
        await i.restart();
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: ["the params", 2] });
        expect(runs).toBe(2);
      },
    );

    test("restarting again and again keeps each run with its outcome", async () => {
      const s = await stage(on, (event) => event.runNumber);
      const i = await s.start();
      for (let n = 2; n <= 4; n++) {
        await i.restart();
        await s.h.runUntilIdle();
      }
      const { runs } = await s.history(i);
      expect(runs.map(({ runNumber, status, output }) => [runNumber, status, output])).toEqual([
        [4, "complete", 4],
        [3, "complete", 3],
        [2, "complete", 2],
        [1, "complete", 1],
      ]);
    });

    test("concurrent pauses and resumes leave one legal state, and the run goes on from it", async () => {
      const s = await stage(on, async (_event, step) => {
        await step.sleep("nap", "1 minute");
        return "done";
      });
      const i = await s.start();
      await Promise.all([i.pause(), i.resume(), i.pause(), i.resume(), i.pause()]);
      expect(["paused", "queued", "waiting"]).toContain(await statusOf(i));
      await i.resume();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "done" });
    });
  });
}
