import { describe, expect, test } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { evicting, HeldBody, stage } from "./stage.js";

export function beside(on: StoreFixture): void {
  describe("a wait beside a running body", () => {
    test("all([do 10 min, sleep 1 min]): the timer fires while the body runs, and the whole takes 10 min", async () => {
      const held = new HeldBody<string>();
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("long", { timeout: "1 hour" }, held.body),
          step.sleep("nap", "1 minute").then(() => step.do("after nap", () => s.clock.now())),
        ]),
      );
      const began = s.clock.now();
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance("1 minute");
      const done = (await s.steps(i)).find(({ name }) => name === "after nap");
      expect(done).toMatchObject({ status: "completed", result: began + 60_000 });
      await s.clock.advance("9 minutes");
      held.result.open("long result");
      await turn;
      expect(await i.status()).toEqual({
        status: "complete",
        output: ["long result", began + 60_000],
      });
      expect(held.entries).toBe(1);
    });

    test.each([
      ["at once, by a hint, if it is sent in the same process", false, 0],
      ["within one heartbeat if it is sent elsewhere", true, 10_000],
    ])("an event for a run whose body executes reaches it %s", async (_what, elsewhere, ms) => {
      const held = new HeldBody<string>();
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("long", { timeout: "1 hour" }, held.body),
          step
            .waitForEvent("wait", { type: "go" })
            .then(({ payload }) => step.do("after event", () => payload)),
        ]),
      );
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance(1);
      const sender = elsewhere ? await (await s.peer()).workflows["MAIN"]?.get(i.id) : i;
      await sender?.sendEvent({ type: "go", payload: "hello" });
      await s.clock.advance(ms);
      const done = (await s.steps(i)).find(({ name }) => name === "after event");
      expect(done).toMatchObject({ status: "completed", result: "hello" });
      held.result.open("long result");
      await turn;
      expect(await i.status()).toMatchObject({ output: ["long result", "hello"] });
    });

    test("a wait times out at its own time while a body runs", async () => {
      const held = new HeldBody<string>();
      let caughtAt = 0;
      const s = await stage(on, (_event, step) =>
        Promise.all([
          step.do("long", { timeout: "1 hour" }, held.body),
          step.waitForEvent("wait", { type: "go", timeout: "2 minutes" }).catch(() => {
            caughtAt = s.clock.now();
          }),
        ]),
      );
      const began = s.clock.now();
      const i = await s.create();
      const turn = s.turn();
      await held.entered.passed;
      await s.clock.advance("5 minutes");
      expect(caughtAt - began).toBe(120_000);
      held.result.open("ok");
      await turn;
      expect(await i.status()).toMatchObject({ status: "complete" });
    });

    test("a result recorded while a wait is open is kept, and its body does not run again", async () => {
      let calls = 0;
      const s = await stage(
        on,
        (_event, step) =>
          Promise.all([step.do("quick", () => ++calls), step.waitForEvent("wait", { type: "go" })]),
        { runner: evicting },
      );
      const i = await s.start();
      await i.sendEvent({ type: "go" });
      expect(await s.toEnd(i)).toMatchObject({ status: "complete" });
      expect(calls).toBe(1);
    });
  });
}
