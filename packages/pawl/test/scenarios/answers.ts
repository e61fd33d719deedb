import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { until } from "../support/until.js";
import { Gate, HeldBody, macrotasks, memories, stage } from "./stage.js";
import { holding, losing } from "./store-wrappers.js";

const BEAT_MS = 10_000;
const once = { retries: { limit: 0, delay: 0 } };

export function answers(on: StoreFixture): void {
  describe("late answers from the store", () => {
    test("a poll sent under an older claim does not change the run", async () => {
      const look = holding("poll", "request");
      const [first, second] = [new HeldBody<string>(), new HeldBody<string>()];
      const s = await stage(
        on,
        async (_event, step) => {
          const a = await step.do("a", first.body);
          await step.waitForEvent("wait", { type: "go" });
          return [a, await step.do("b", second.body)];
        },
        { around: look.around },
      );
      const i = await s.create();
      const firstTurn = s.turn();
      await first.entered.passed;
      look.arm();
      await i.pause();
      await look.reached;
      await i.resume();
      first.result.open("a");
      await firstTurn;
      await i.sendEvent({ type: "go" });
      const secondTurn = s.turn();
      await second.entered.passed;
      await look.letGo();
      expect(second.signal?.aborted).toBe(false);
      second.result.open("b");
      await secondTurn;
      expect(await i.status()).toEqual({ status: "complete", output: ["a", "b"] });
      expect(second.entries).toBe(1);
    });

    test("a poll that finds the run parked before the park is answered leaves the run in memory", async () => {
      const look = holding("poll", "request");
      const commit = holding("commit", "answer");
      const body = new HeldBody();
      let starts = 0;
      const s = await stage(
        on,
        async (_event, step) => {
          starts += 1;
          await step.do("a", body.body);
          await step.sleep("nap", "1 hour");
        },
        { around: (store) => look.around(commit.around(store)) },
      );
      const i = await s.create();
      const turn = s.turn();
      await body.entered.passed;
      look.arm();
      await i.pause();
      await look.reached;
      await i.resume();
      commit.arm();
      body.result.open(1);
      await commit.reached;
      await look.letGo();
      await commit.letGo();
      await turn;
      expect(await s.toEnd(i)).toMatchObject({ status: "complete" });
      expect(starts).toBe(1);
    });

    test("a step called before the park is answered runs at once, not when the parked sleep ends", async () => {
      const commit = holding("commit", "answer");
      const outside = new Gate<string>();
      const s = await stage(
        on,
        async (_event, step) => {
          const winner = await Promise.race([outside.passed, step.sleep("nap", "1 hour")]);
          return step.do("tell", () => winner);
        },
        { around: commit.around },
      );
      const i = await s.create();
      commit.arm();
      const turn = s.turn();
      await commit.reached;
      outside.open("outside");
      await macrotasks(10); // lets the pass that finds the step happen
      await commit.letGo();
      await turn;
      await s.clock.advance(0);
      expect(await i.status()).toEqual({ status: "complete", output: "outside" });
    });

    test("a heartbeat does not start a second copy of a run whose create is not answered yet", async () => {
      const create = holding("create", "answer");
      const [other, body] = [new HeldBody(), new HeldBody()];
      const s = await stage(
        on,
        (event, step) => step.do("a", { timeout: "1 day" }, event.payload ? other.body : body.body),
        { around: create.around },
      );
      const peer = await s.peer();
      s.h.runner.serve(() => {});
      await s.create("other");
      const turn = s.turn();
      await other.entered.passed;
      create.arm();
      const creating = s.create();
      await create.reached;
      // This advances the clock of the peer, none of whose calls is held.
      await peer.h.clock.advance(BEAT_MS);
      await create.letGo();
      const i = await creating;
      await body.entered.passed;
      await s.clock.advance(2 * BEAT_MS);
      expect(body.signal?.aborted).toBe(false);
      for (const each of [other, body]) each.result.open("done");
      await turn;
      await s.clock.advance(0);
      expect(await i.status()).toEqual({ status: "complete", output: "done" });
      expect(body.entries).toBe(1);
    });

    test("an event exactly at the deadline is in time, even if a commit's answer has already reported that time", async () => {
      const look = holding("poll", "request");
      const [a, b] = [new HeldBody(), new HeldBody()];
      const s = await stage(
        on,
        (_event, step) =>
          Promise.all([
            step.do("a", { timeout: "1 day" }, a.body),
            step.do("b", { timeout: "1 day" }, b.body),
            step.waitForEvent("wait", { type: "go", timeout: 5.5 * BEAT_MS }).then(
              () => "event",
              () => "timeout",
            ),
          ]),
        { around: look.around },
      );
      const peer = await s.peer();
      const i = await s.create();
      const turn = s.turn();
      await b.entered.passed;
      await s.clock.advance(5.5 * BEAT_MS - 1);
      look.arm();
      await peer.h.clock.advance(1);
      await look.reached;
      a.result.open("a");
      await until(
        async () => (await s.steps(i)).some(({ name, result }) => name === "a" && result === "a"),
        "stored",
      );
      await macrotasks(10); // lets the passes after the commit happen
      const elsewhere = await peer.workflows["MAIN"]?.get(i.id);
      await elsewhere?.sendEvent({ type: "go" });
      await look.letGo();
      b.result.open("b");
      await turn;
      expect(await i.status()).toMatchObject({ output: ["a", "b", "event"] });
    });
  });

  describe("lost answers from the store", () => {
    test("a heartbeat finds the run whose claim was not answered, while other runs go on", async () => {
      const claim = losing("claim");
      const other = new HeldBody();
      const s = await stage(
        on,
        (event, step) =>
          step.do("a", { timeout: "1 day" }, (context) =>
            event.payload ? other.body(context) : context.attempt,
          ),
        { around: claim.around },
      );
      await s.create("other");
      const turn = s.turn();
      await other.entered.passed;
      const i = await s.create();
      claim.arm();
      await expect(s.h.tick()).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
      await s.clock.advance(BEAT_MS);
      expect(await i.status()).toEqual({ status: "complete", output: 1 });
      other.result.open(1);
      await turn;
    });
  });

  describe.each(memories)(
    "a pause that arrives while the start of a single-attempt step is written, %s",
    (_, runner) => {
      /** The workflow's code waits for `second` before it calls another single-attempt step. */
      async function pausedAtStart(body: HeldBody) {
        const commit = holding("commit", "request");
        const second = new Gate();
        const s = await stage(
          on,
          (_event, step) =>
            Promise.allSettled([
              step.do("first", { timeout: "1 day", ...once }, body.body),
              second.passed.then(() => step.do("second", once, () => 2)),
            ]).then((all) => all.map((each) => (each as { value?: unknown }).value ?? "spent")),
          { around: commit.around, runner },
        );
        const i = await s.create();
        commit.arm();
        const turn = s.turn();
        await commit.reached;
        second.open();
        await macrotasks(10); // lets the run ask for the start of the second step
        await i.pause();
        await commit.letGo();
        await turn;
        expect(await i.status()).toEqual({ status: "paused" });
        expect(body.entries).toBe(0);
        await i.resume();
        return { s, i };
      }

      test("leaves the step its one attempt", async () => {
        const body = new HeldBody();
        body.result.open(1);
        const { s, i } = await pausedAtStart(body);
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: [1, 2] });
      });

      test("leaves the step no more than that one attempt", async () => {
        const body = new HeldBody();
        const { s, i } = await pausedAtStart(body);
        // A claim passes over a ticket that is locked at that moment, so one turn may not be enough.
        const turns = async (): Promise<void> => {
          while (body.entries === 0) await s.turn();
        };
        void turns();
        await body.entered.passed;
        await s.clock.advance(1);
        await s.h.crashRunner(s.h.runner);
        s.addRunner();
        await s.clock.advance(3 * BEAT_MS);
        expect(await s.toEnd(i)).toEqual({ status: "complete", output: ["spent", 2] });
        expect(body.entries).toBe(1);
      });
    },
  );
}
