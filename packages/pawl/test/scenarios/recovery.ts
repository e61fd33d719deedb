import { RunnerDiedError } from "pawl";
import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { HeldBody, macrotasks, stage, type Instance, type Stage } from "./stage.js";
import { holding, losing, switchable } from "./store-wrappers.js";

const LEASE_MS = 30_000;

/** Crashes the process while a body executes. Another runner takes over once the lease has run out. */
async function crashDuring(s: Stage, body: { entered: { passed: Promise<void> } }): Promise<void> {
  void s.turn();
  await body.entered.passed;
  await crash(s);
}

async function crash(s: Stage): Promise<void> {
  await s.h.crashRunner(s.lastRunner());
  s.addRunner();
  await s.clock.advance(LEASE_MS);
}

/**
 * Returns a timer that is already due when the code that set it has done all it can, as in a busy process.
 */
function overAtOnce(): Promise<void> {
  const over = new Promise<void>((resolve) => void setTimeout(resolve, 1));
  const until = performance.now() + 5;
  while (performance.now() < until);
  return over;
}

export function recovery(on: StoreFixture): void {
  describe("recovery", () => {
    test("after a crash another runner goes on once the lease has run out, and not before", async () => {
      const dead = new HeldBody();
      const calls: string[] = [];
      const s = await stage(on, async (_event, step) => {
        const a = await step.do("a", () => (calls.push("a"), 1));
        const b = await step.do("b", (context) => {
          calls.push(`b ${context.attempt}`);
          return context.attempt === 1 ? dead.body(context) : 2;
        });
        return [a, b];
      });
      const i = await s.create();
      void s.turn();
      await dead.entered.passed;
      await s.h.crashRunner(s.h.runner);
      s.addRunner();
      await s.pass(LEASE_MS - 1);
      expect(calls).toEqual(["a", "b 1"]);
      expect(await i.status()).toEqual({ status: "running" });
      // Runners look for dead ones ten times per lease.
      await s.pass(LEASE_MS / 10);
      expect(await i.status()).toEqual({ status: "complete", output: [1, 2] });
      expect(calls).toEqual(["a", "b 1", "b 2"]);
    });

    test("the late result of a dead owner's body is dropped", async () => {
      const dead = new HeldBody<string>();
      const s = await stage(on, (_event, step) =>
        step.do("a", (context) => (context.attempt === 1 ? dead.body(context) : "second")),
      );
      const i = await s.create();
      await crashDuring(s, dead);
      dead.result.open("first, too late");
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "second" });
      expect(await s.steps(i)).toMatchObject([{ result: "second" }]);
    });

    test("a step is never begun more often than its limit allows, crashes included", async () => {
      let entries = 0;
      const s = await stage(on, (_event, step) =>
        step
          .do("kills", { retries: { limit: 2, delay: 1 } }, () => {
            entries += 1;
            void s.h.crashRunner(s.lastRunner());
            return new Promise(() => {});
          })
          .catch((error: Error) => error.name),
      );
      const i = await s.create();
      for (let n = 0; n < 5; n++) {
        await s.turn();
        s.addRunner();
        await s.clock.advance(LEASE_MS);
      }
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "StepMaxAttemptsExceeded" });
      expect(entries).toBe(3);
    });

    test("a step behind a non-step await that is over at once is begun no more often than its limit allows", async () => {
      let lives = 0;
      const entries: number[] = [];
      const s = await stage(on, async (_event, step) => {
        const life = ++lives;
        const c = step.do("c", ({ attempt }) => (attempt === 1 ? new Promise(() => {}) : "c"));
        const foreign = life === 1 ? overAtOnce() : c;
        await foreign;
        const b = step.do("b", { retries: { limit: 1, delay: 1 } }, () => {
          entries.push(life);
          void s.h.crashRunner(s.lastRunner());
          return new Promise(() => {});
        });
        return b.catch((error: Error) => error.name);
      });
      const i = await s.create();
      for (let n = 0; n < 3; n++) {
        await s.turn();
        s.addRunner();
        await s.clock.advance(LEASE_MS);
      }
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "StepMaxAttemptsExceeded" });
      expect(entries).toEqual([1, 2]);
    });

    test("failures and crashes count against the same limit", async () => {
      const attempts: number[] = [];
      const s = await stage(on, (_event, step) =>
        step.do("mixed", { retries: { limit: 2, delay: 1 } }, ({ attempt }) => {
          attempts.push(attempt);
          if (attempt === 2) {
            void s.h.crashRunner(s.lastRunner());
            return new Promise(() => {});
          }
          throw new Error(`failure ${attempt}`);
        }),
      );
      const i = await s.start();
      await s.clock.advance(1);
      await s.turn();
      s.addRunner();
      await s.clock.advance(LEASE_MS);
      expect(await s.toEnd(i)).toMatchObject({ error: { message: "failure 3" } });
      expect(attempts).toEqual([1, 2, 3]);
    });

    test("history shows the attempts whose runners died, and how long they ran as far as is known", async () => {
      const s = await stage(on, async (_event, step) => {
        await step.do("before", () => {});
        return step.do(
          "mixed",
          { retries: { limit: 4, delay: "1 minute", backoff: "constant" } },
          ({ attempt }) => {
            if (attempt === 2) throw new Error("failure 2");
            if (attempt === 4) return "through";
            return new Promise(() => {});
          },
        );
      });
      const died = (n: number) => ({
        name: "RunnerDiedError",
        message: `the runner of attempt ${n} of step "mixed" died before the attempt ended`,
      });
      const i = await s.create();
      const mixed = async () => (await s.steps(i)).find(({ name }) => name === "mixed");
      const start = s.clock.now();
      void s.turn();
      await s.clock.advance("5 seconds");
      expect((await mixed())?.attempts).toEqual([
        { n: 1, startedAt: new Date(start), endedAt: null },
      ]);
      await crash(s);
      const over = s.clock.now();
      await s.h.runUntilIdle(); // attempt 2 fails
      expect((await mixed())?.attempts).toEqual([
        { n: 1, startedAt: new Date(start), endedAt: new Date(over), error: died(1) },
        {
          n: 2,
          startedAt: new Date(over),
          endedAt: new Date(over),
          error: { name: "Error", message: "failure 2" },
        },
      ]);
      await s.clock.advance("1 minute");
      const third = s.clock.now();
      void s.turn();
      await s.clock.advance("5 seconds");
      expect((await mixed())?.attempts[2]).toEqual({
        n: 3,
        startedAt: new Date(third),
        endedAt: null,
      });
      await crash(s);
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "through" });
      const end = new Date(s.clock.now());
      expect(await mixed()).toMatchObject({ status: "completed", result: "through" });
      expect((await mixed())?.attempts.slice(2)).toEqual([
        { n: 3, startedAt: new Date(third), endedAt: end, error: died(3) },
        { n: 4, startedAt: end, endedAt: end },
      ]);
    });

    test("history shows an attempt whose runner died before anything of it was written", async () => {
      const dead = new HeldBody();
      const s = await stage(on, (_event, step) =>
        step.do("a", { retries: { limit: 1, delay: 1 } }, dead.body).catch((error: Error) => {
          const { name } = error.cause as Error;
          return [error.name, name, error.cause instanceof RunnerDiedError];
        }),
      );
      const i = await s.create();
      await crashDuring(s, dead);
      void s.turn();
      await s.clock.advance(0);
      await crash(s);
      expect(await s.toEnd(i)).toEqual({
        status: "complete",
        output: ["StepMaxAttemptsExceeded", "RunnerDiedError", true],
      });
      const [step] = await s.steps(i);
      expect(step?.attempts).toMatchObject([
        { n: 1, error: { name: "RunnerDiedError" } },
        { n: 2, error: { name: "RunnerDiedError" } },
      ]);
      expect(step?.attempts).toHaveLength(2);
      expect(step?.error?.name).toBe("StepMaxAttemptsExceeded");
    });

    test("a step with limit 0 is never entered twice", async () => {
      const dead = new HeldBody();
      const s = await stage(on, (_event, step) =>
        step
          .do("at most once", { retries: { limit: 0, delay: 0 } }, dead.body)
          .catch((error: Error) => [error.name, (error.cause as Error).name]),
      );
      const i = await s.create();
      await crashDuring(s, dead);
      expect(await s.toEnd(i)).toEqual({
        status: "complete",
        output: ["StepMaxAttemptsExceeded", "RunnerDiedError"],
      });
      expect(dead.entries).toBe(1);
    });

    test("a crash charges every step that was running, and none that was waiting for its retry", async () => {
      const attempts: Record<string, number[]> = { a: [], b: [], waiting: [] };
      const hold = new HeldBody();
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("waiting", { retries: { limit: 5, delay: "1 hour" } }, ({ attempt }) => {
            attempts["waiting"]?.push(attempt);
            if (attempt === 1) throw new Error("no");
          }),
          ...["a", "b"].map((name) =>
            step.do(name, (context) => {
              attempts[name]?.push(context.attempt);
              return context.attempt === 1 ? hold.body(context) : name;
            }),
          ),
        ]),
      );
      const i = await s.create();
      void s.turn();
      await hold.entered.passed;
      await s.clock.advance(1); // the failure of "waiting" is stored
      await crash(s);
      expect(await s.toEnd(i)).toMatchObject({ status: "complete" });
      expect(attempts).toEqual({ a: [1, 2], b: [1, 2], waiting: [1, 2] });
    });

    test("a run that keeps killing its process errors with RunCrashedError, and its neighbours complete", async () => {
      let entries = 0;
      const s = await stage(on, async (event, step) => {
        if (event.payload === "healthy") {
          await step.sleep("nap", LEASE_MS * 3);
          return step.do("fine", () => "fine");
        }
        return step.do("kills", { retries: { limit: Infinity, delay: 1 } }, () => {
          entries += 1;
          void s.h.crashRunner(s.lastRunner());
          return new Promise(() => {});
        });
      });
      const healthy = [await s.create("healthy"), await s.create("healthy")];
      await s.h.runUntilIdle();
      const killer = await s.create("killer");
      for (let n = 0; n < 10; n++) {
        await s.turn();
        s.addRunner();
        await s.clock.advance(LEASE_MS);
      }
      expect(await s.toEnd(killer)).toMatchObject({
        status: "errored",
        error: { name: "RunCrashedError" },
      });
      expect(entries).toBe(5);
      for (const i of healthy) {
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: "fine" });
      }
    });

    test("a run that waits for its turn while others kill process after process is not blamed for it", async () => {
      const s = await stage(on, (event, step) =>
        step.do("a", { retries: { limit: Infinity, delay: 1 } }, () => {
          if (event.payload !== "killer") return "fine";
          void s.h.crashRunner(s.lastRunner());
          return new Promise<string>(() => {});
        }),
      );
      const killers = [await s.create("killer"), await s.create("killer")];
      const others = await Promise.all(Array.from({ length: 8 }, () => s.create("other")));
      for (let n = 0; n < 12; n++) {
        await s.turn();
        s.addRunner();
        await s.clock.advance(LEASE_MS);
      }
      await s.h.runUntilIdle();
      for (const killer of killers) {
        expect(await killer.status()).toMatchObject({ error: { name: "RunCrashedError" } });
      }
      for (const other of others) {
        expect(await other.status()).toEqual({ status: "complete", output: "fine" });
      }
    });

    test.each([[""], [", even if it is paused each time"]])(
      "a run that makes progress between crashes survives any number of them%s",
      async (pauses) => {
        const killed = new Set<number>();
        const s = await stage(on, async (_event, step) => {
          for (let n = 0; n < 8; n++) {
            await step.do(`step ${n}`, async () => {
              if (killed.has(n)) return n;
              killed.add(n);
              if (pauses) await i.pause();
              void s.h.crashRunner(s.lastRunner());
              return new Promise<number>(() => {});
            });
          }
          return "through";
        });
        const i = await s.create();
        for (let n = 0; n < 9; n++) {
          await s.turn();
          s.addRunner();
          await s.clock.advance(LEASE_MS);
          if (!pauses || n === 8) continue;
          await s.turn();
          expect(await i.status()).toEqual({ status: "paused" });
          await i.resume();
        }
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: "through" });
        expect(killed.size).toBe(8);
      },
    );

    test("runs suspected of killing their processes run one at a time, even if the answer to their claim was lost", async () => {
      const claim = losing("claim");
      const held = [new HeldBody(), new HeldBody()];
      let running = 0;
      let most = 0;
      const s = await stage(
        on,
        (_event, step) =>
          step.do("a", ({ attempt, ...context }) => {
            const dead = held[attempt - 1];
            if (dead !== undefined) return dead.body(context);
            most = Math.max(most, ++running);
            return macrotasks(20).then(() => void (running -= 1));
          }),
        { around: claim.around },
      );
      const all = await Promise.all([s.create(), s.create(), s.create()]);
      for (const body of held) await crashDuring(s, body);
      claim.arm();
      await expect(s.h.tick()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await s.clock.advance(LEASE_MS / 3);
      for (const i of all) expect(await s.toEnd(i)).toMatchObject({ status: "complete" });
      expect(most).toBe(1);
      expect(held.map(({ entries }) => entries)).toEqual([3, 3]);
    });

    test("a crash costs an attempt even if the takeover only pauses the run", async () => {
      const dead = new HeldBody();
      const attempts: number[] = [];
      const s = await stage(on, (_event, step) =>
        step.do("a", (context) => {
          attempts.push(context.attempt);
          return context.attempt === 1 ? dead.body(context) : "second";
        }),
      );
      const i = await s.create();
      void s.turn();
      await dead.entered.passed;
      await i.pause();
      await crash(s);
      await s.h.tick();
      expect(await i.status()).toEqual({ status: "paused" });
      await i.resume();
      expect(await s.toEnd(i)).toEqual({ status: "complete", output: "second" });
      expect(attempts).toEqual([1, 2]);
    });

    test("code that kills its process outside of any step errors with RunCrashedError, too", async () => {
      let starts = 0;
      const s = await stage(on, async () => {
        starts += 1;
        await macrotasks(1);
        await s.h.crashRunner(s.lastRunner());
        await new Promise(() => {});
      });
      const i = await s.create();
      for (let n = 0; n < 10; n++) {
        await s.turn();
        s.addRunner();
        await s.clock.advance(LEASE_MS);
      }
      expect(await s.toEnd(i)).toMatchObject({ error: { name: "RunCrashedError" } });
      expect(starts).toBe(5);
    });

    test("a body that runs for many leases keeps its run, because heartbeats renew the lease", async () => {
      const long = new HeldBody<string>();
      const s = await stage(on, (_event, step) => step.do("long", { timeout: "1 day" }, long.body));
      const i = await s.create();
      const turn = s.turn();
      await long.entered.passed;
      const other = s.addRunner();
      for (let n = 0; n < 20; n++) {
        await s.clock.advance(LEASE_MS / 2);
        expect(await other.tick()).toMatchObject({ processed: 0 });
      }
      expect(await s.steps(i)).toMatchObject([{ name: "long", status: "running" }]);
      long.result.open("done");
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "done" });
      expect(long.entries).toBe(1);
    });

    test("a process cut off from the database loses its runs: signals fire, and results are dropped", async () => {
      const line = switchable();
      const zombie = new HeldBody<string>();
      const s = await stage(
        on,
        (_event, step) =>
          step.do("a", { timeout: "1 day" }, (context) =>
            context.attempt === 1 ? zombie.body(context) : "second",
          ),
        { around: line.around },
      );
      const peer = await s.peer();
      const i = await s.create();
      const turn = s.turn();
      await zombie.entered.passed;
      line.cut(0);
      await s.clock.advance(LEASE_MS + 1);
      await peer.h.runUntilIdle();
      expect(await i.status().catch(() => null)).toBeNull();
      expect(zombie.signal?.aborted).toBe(false);
      line.restore(0);
      await s.clock.advance(LEASE_MS);
      expect(zombie.signal?.aborted).toBe(true);
      zombie.result.open("first, too late");
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "second" });
    });

    test("after an outage that every process has seen, however long, no runner is taken for dead", async () => {
      const line = switchable();
      const body = new HeldBody<string>();
      const s = await stage(on, (_event, step) => step.do("a", { timeout: "1 day" }, body.body), {
        around: line.around,
      });
      const peer = await s.peer();
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      await peer.h.tick();
      for (const n of [0, 1]) line.cut(n);
      await expect(peer.h.tick()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await s.clock.advance(LEASE_MS + 1);
      for (const n of [0, 1]) line.restore(n);
      expect(await peer.h.tick()).toMatchObject({ processed: 0 });
      await s.clock.advance(5_000);
      expect(body.signal?.aborted).toBe(false);
      body.result.open("stored after all");
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "stored after all" });
      expect(body.entries).toBe(1);
    });

    test("an outage shorter than the lease costs nothing: the result is sent again", async () => {
      const line = switchable();
      const body = new HeldBody<string>();
      const s = await stage(on, (_event, step) => step.do("a", body.body), { around: line.around });
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      line.cut(0);
      body.result.open("stored after all");
      await s.clock.advance(5_000);
      line.restore(0);
      await s.clock.advance(5_000);
      await turn;
      expect(await i.status()).toEqual({ status: "complete", output: "stored after all" });
      expect(body.entries).toBe(1);
    });
  });

  describe("a graceful stop", () => {
    test("waits for running bodies, stores their results, and starts nothing new", async () => {
      const body = new HeldBody<string>();
      const calls: string[] = [];
      const s = await stage(on, async (_event, step) => {
        const a = await step.do("a", body.body);
        const b = await step.do("b", ({ attempt }) => (calls.push("b"), attempt));
        return [a, b];
      });
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      const stopped = s.h.runner.stop(60_000);
      body.result.open("a");
      await stopped;
      await turn;
      expect(calls).toEqual([]);
      expect(await s.steps(i)).toMatchObject([{ name: "a", result: "a" }]);
      expect(await i.status()).toEqual({ status: "queued" });
      // The run was given back, so no lease has to run out.
      await s.addRunner().tick();
      expect(await i.status()).toEqual({ status: "complete", output: ["a", 1] });
      expect(body.entries).toBe(1);
    });

    test.each([[5], [0]])(
      "gives back a body that outlasts it, which runs again only if its limit of %i allows retries",
      async (limit) => {
        const body = new HeldBody<string>();
        const attempts: number[] = [];
        const s = await stage(on, (_event, step) =>
          step.do("slow", { timeout: "1 day", retries: { limit, delay: 0 } }, (context) => {
            attempts.push(context.attempt);
            return attempts.length === 1 ? body.body(context) : "second";
          }),
        );
        const i = await s.create();
        const turn = s.turn();
        await body.entered.passed;
        const stopped = s.h.runner.stop(10_000);
        await s.clock.advance(10_000);
        await stopped;
        await turn;
        expect(body.signal?.aborted).toBe(true);
        body.result.open("late");
        await s.addRunner().tick();
        if (limit > 0) {
          expect(await i.status()).toEqual({ status: "complete", output: "second" });
          expect(attempts).toEqual([1, 1]);
        } else {
          // The body may have had its effect, so a step that promises "at most once" must not run again.
          expect(await i.status()).toMatchObject({ error: { name: "StepMaxAttemptsExceeded" } });
          expect(attempts).toEqual([1]);
        }
      },
    );

    /** Stops a runner while the answer to its `verb` is on its way. */
    async function stoppedDuring(
      verb: "claim" | "create",
      begin: (s: Stage, hold: () => void) => Promise<{ i: Instance; turn?: Promise<unknown> }>,
    ): Promise<void> {
      const slow = holding(verb, "answer");
      const attempts: number[] = [];
      const s = await stage(
        on,
        (_event, step) => step.do("a", ({ attempt }) => void attempts.push(attempt)),
        { around: slow.around },
      );
      await s.h.tick();
      const begun = begin(s, () => slow.arm());
      await slow.reached;
      const stopped = s.h.runner.stop(60_000);
      await slow.letGo();
      await stopped;
      const { i, turn } = await begun;
      await turn;
      expect(attempts).toEqual([]);
      const next = await s.peer();
      await next.h.runner.tick();
      expect(await i.status()).toMatchObject({ status: "complete" });
      expect(attempts).toEqual([1]);
    }

    test("waits for a claim that is on its way, and gives back the claimed run at no cost", () =>
      stoppedDuring("claim", async (s, hold) => {
        const i = await s.create();
        hold();
        return { i, turn: s.turn() };
      }));

    test("waits for an eager start that is on its way, too", () =>
      stoppedDuring("create", async (s, hold) => {
        s.h.runner.serve(() => {});
        hold();
        return { i: await s.create() };
      }));

    test("of an idle runner is immediate, and the runner may serve again", async () => {
      const s = await stage(on, () => "done");
      await s.h.tick();
      await s.h.runner.stop(60_000);
      expect(await s.run()).toEqual({ status: "complete", output: "done" });
    });
  });
}
