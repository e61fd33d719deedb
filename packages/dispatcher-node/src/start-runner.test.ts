import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  createWorkflows,
  StoreClosedError,
  WorkflowError,
  type Logger,
  type Store,
  type WorkflowStep,
  type WorkflowEvent,
} from "pawl";
import { sqliteStore, type SqliteHandle } from "pawl/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { openSqlite } from "./open-sqlite.js";
import { startRunner, type StartRunnerOptions } from "./start-runner.js";

type Params = { readonly held?: boolean } | undefined;
type Code = (event: WorkflowEvent<Params>, step: WorkflowStep) => Promise<unknown>;

const timeout = "20 seconds";
/** So rare that no test is helped by a poll. */
const never = { minMs: 3_600_000, maxMs: 3_600_000 };

function open(code: Code, options: StartRunnerOptions = {}) {
  const folder = mkdtempSync(join(tmpdir(), "pawl-runner-"));
  const handle = openSqlite(join(folder, "pawl.db"), { synchronous: "normal" });
  const calls: string[] = [];
  const events: string[] = [];
  const line: Line = { isCut: false, replyInMs: 0 };
  const log = (event: string): void => void events.push(event);
  const logger: Logger = { debug() {}, info: log, warn: log, error: log };
  const workflows = { MAIN: { name: "main", run: code } } as const;
  const process = () => {
    const store = watched(sqliteStore(handle), calls, line);
    const pawl = createWorkflows({ workflows, store, logger });
    return { pawl, start: () => startRunner(pawl, options) };
  };
  const first = process();
  onTestFinished(async () => {
    line.isCut = false;
    await first.pawl.close();
    handle.close();
    rmSync(folder, { recursive: true });
  });
  return { ...first, process, main: first.pawl.workflows.MAIN, calls, events, line };
}

type Line = { isCut: boolean; replyInMs: number };

/** Records the calls. It can lose the connection, or be slow to answer. */
function watched<Tx>(store: Store<Tx>, calls: string[], line: Line): Store<Tx> {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        calls.push(String(name));
        if (line.isCut) throw new WorkflowError("STORE_UNAVAILABLE", "the line is cut");
        const answer: unknown = await member.apply(target, args);
        if (line.replyInMs > 0) await pause(line.replyInMs);
        return answer;
      };
    },
  });
}

async function until(look: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + 20_000;
  while (!(await look())) {
    if (performance.now() > deadline) throw new Error(`never: ${look.toString()}`);
    await pause(2);
  }
}

class Gate {
  entries = 0;
  open: () => void = () => {};
  readonly #opened = new Promise<void>((resolve) => (this.open = resolve));
  enter(): Promise<void> {
    this.entries += 1;
    return this.#opened;
  }
}

async function running(code: Code, options: StartRunnerOptions = {}) {
  const opened = open(code, options);
  await opened.pawl.migrate();
  const runner = opened.start();
  onTestFinished(() => runner.stop({ timeoutMs: 0 }));
  // By now the runner has looked for work, and rests.
  await until(() => opened.calls.includes("nextDueInMs"));
  return { ...opened, runner };
}

const wait: Code = async (_event, step) =>
  (await step.waitForEvent("wait", { type: "go" })).payload;

describe("startRunner", () => {
  test("runs many instances of many steps, more than it has slots for", async () => {
    const steps = 10;
    const code: Code = async (_event, step) => {
      let sum = 0;
      for (let n = 1; n <= steps; n++) sum += await step.do(`${n}`, () => n);
      return sum;
    };
    const { main } = await running(code, { concurrency: 7, poll: never });
    const ids = Array.from({ length: 50 }, (_, n) => ({ id: `i${n}` }));
    const instances = await main.createBatch(ids);
    for (const each of instances) expect(await each.result({ timeout })).toBe(55);
  });

  test("finds instances that were there before it started", async () => {
    const { pawl, main, start } = open(async (_event, step) => step.do("a", () => "ok"), {
      poll: never,
    });
    await pawl.migrate();
    const instance = await main.create();
    const runner = start();
    expect(await instance.result({ timeout })).toBe("ok");
    await runner.stop();
  });

  test("starts the runs it found before it asks anything else of the store", async () => {
    const { pawl, main, calls, start } = open(
      async (_event, step) => step.do("a", () => void calls.push("body")),
      { poll: never },
    );
    await pawl.migrate();
    const instance = await main.create();
    calls.length = 0;
    const runner = start();
    await instance.result({ timeout });
    await until(() => calls.includes("nextDueInMs"));
    await runner.stop();
    const since = calls.slice(calls.indexOf("claim") + 1);
    expect(since.slice(0, since.indexOf("body"))).not.toContain("nextDueInMs");
    expect(calls).not.toContain("unknownLanes");
  });

  test("gives found runs time to begin even if a second claim finds nothing more", async () => {
    const { pawl, main, calls, start } = open(
      async (_event, step) => step.do("a", () => pawl.wake()),
      { poll: never },
    );
    const times = new Map<string, number>();
    calls.push = (...verbs) => {
      for (const verb of verbs) if (!times.has(verb)) times.set(verb, performance.now());
      return Array.prototype.push.apply(calls, verbs);
    };
    await pawl.migrate();
    const instance = await main.create();
    const runner = start();
    await instance.result({ timeout });
    await until(() => calls.includes("nextDueInMs"));
    await until(() => calls.filter((verb) => verb === "claim").length > 1);
    await runner.stop();
    const restMs = (times.get("nextDueInMs") ?? 0) - (times.get("claim") ?? 0);
    expect(restMs).toBeGreaterThan(25); // the store waits 30 ms by another clock
  });

  test("answers hints that come before the claim is sent with that claim", async () => {
    const { pawl, calls, line, start } = open(wait, { poll: never });
    await pawl.migrate();
    line.replyInMs = 50;
    const runner = start();
    // The runner registers before it can claim.
    await until(() => calls.includes("register"));
    pawl.wake();
    line.replyInMs = 0;
    await until(() => calls.includes("nextDueInMs"));
    await runner.stop();
    expect(calls.filter((verb) => verb === "claim")).toHaveLength(1);
  });

  test("ends a sleep without a poll", async () => {
    const code: Code = (_event, step) => step.sleep("nap", 50);
    const { main } = await running(code, { poll: never });
    const startedAt = performance.now();
    await (await main.create()).result({ timeout });
    const tookMs = performance.now() - startedAt;
    expect(tookMs).toBeGreaterThan(45);
  });

  test("wakes a parked run for an event at once, without a poll", async () => {
    const { main } = await running(wait, { poll: never });
    const instance = await main.create();
    await until(async () => (await instance.status()).status === "waiting");
    await instance.sendEvent({ type: "go", payload: "hello" });
    expect(await instance.result({ timeout })).toBe("hello");
  });

  test("finds by polling what no hint told about", async () => {
    const { main, process } = await running(wait, { poll: { minMs: 20, maxMs: 40 } });
    const instance = await main.create();
    await until(async () => (await instance.status()).status === "waiting");
    // This is another process, which runs nothing.
    const other = await process().pawl.workflows.MAIN.get(instance.id);
    await other.sendEvent({ type: "go", payload: "hello" });
    expect(await instance.result({ timeout })).toBe("hello");
  });

  test("uses a slot at once when it becomes free, while others are taken", async () => {
    const gate = new Gate();
    const code: Code = (event, step) =>
      step.do("a", () => (event.payload?.held ? gate.enter() : undefined));
    const { main } = await running(code, { concurrency: 2, poll: never });
    const held = await main.create({ params: { held: true } });
    await until(() => gate.entries === 1);
    const quick = await Promise.all(Array.from({ length: 20 }, () => main.create()));
    for (const each of quick) await each.result({ timeout });
    expect((await held.status()).status).toBe("running");
    gate.open();
    await held.result({ timeout });
  });

  test("asks the store less and less often while it is idle", async () => {
    const { main, calls } = await running(wait, { poll: { minMs: 100, maxMs: 200 } });
    const parked = await main.createBatch([{ id: "a" }, { id: "b" }]);
    for (const each of parked) {
      await until(async () => (await each.status()).status === "waiting");
    }
    calls.length = 0;
    await pause(1_000);
    const claims = calls.filter((verb) => verb === "claim").length;
    // Ten would fit if the interval stayed at 100 ms.
    expect(claims).toBeGreaterThan(2);
    expect(claims).toBeLessThan(9);
    expect(calls.length).toBeLessThan(9 * 5);
  });

  test("asks less and less often for a run that is due but cannot be claimed", async () => {
    const { pawl, calls, start } = open(wait, { poll: { minMs: 1_000, maxMs: 1_000 } });
    await pawl.migrate();
    pawl.runner.nextLookInMs = async () => (calls.push("nextDueInMs"), 0);
    const runner = start();
    await until(() => calls.includes("nextDueInMs"));
    await pause(600);
    await runner.stop();
    // 5, 10, 20, 40, 80, 160, 320 ms …
    expect(calls.filter((verb) => verb === "claim").length).toBeLessThan(10);
  });

  test("answers hints that come together with one or two claims", async () => {
    const { pawl, calls } = await running(wait, { poll: never });
    calls.length = 0;
    for (let n = 0; n < 100; n++) pawl.wake();
    await until(() => calls.includes("nextDueInMs"));
    await pause(20);
    expect(calls.filter((verb) => verb === "claim").length).toBeLessThanOrEqual(2);
  });

  test("asks an unavailable store again with patience, and then goes on", async () => {
    const { main, pawl, calls, events, line } = await running(wait, { poll: never });
    const instance = await main.create();
    await until(async () => (await instance.status()).status === "waiting");
    await instance.sendEvent({ type: "other" });
    line.isCut = true;
    calls.length = 0;
    pawl.wake();
    await until(() => events.includes("claim.failed"));
    for (let n = 0; n < 20; n++) {
      pawl.wake();
      await pause(5);
    }
    expect(calls.length).toBeLessThan(5);
    line.isCut = false;
    await instance.sendEvent({ type: "go", payload: "back" });
    expect(await instance.result({ timeout })).toBe("back");
  });

  test("waits on a stop for running bodies, starts no more, and charges no attempt", async () => {
    const gate = new Gate();
    const attempts: number[] = [];
    const code: Code = async (_event, step) => {
      await step.do("a", () => gate.enter());
      return step.do("b", ({ attempt }) => attempts.push(attempt));
    };
    const { main, runner, start } = await running(code);
    const instance = await main.create();
    await until(() => gate.entries === 1);
    let isOver = false;
    const stopped = runner.stop().then(() => (isOver = true));
    await pause(50);
    expect(isOver).toBe(false);
    gate.open();
    await stopped;
    expect(attempts).toEqual([]);
    expect((await instance.status()).status).toBe("queued");
    const again = start();
    await instance.result({ timeout });
    await again.stop();
    expect([gate.entries, attempts]).toEqual([1, [1]]);
  });

  test("gives back a body that outlasts the drain, which starts anew as the same attempt", async () => {
    const attempts: number[] = [];
    const code: Code = async (_event, step) =>
      step.do("a", ({ attempt }) => {
        attempts.push(attempt);
        return attempts.length === 1 ? new Promise<string>(() => {}) : "ok";
      });
    const { main, runner, start } = await running(code);
    const instance = await main.create();
    await until(() => attempts.length === 1);
    await runner.stop({ timeoutMs: 20 });
    const again = start();
    expect(await instance.result({ timeout })).toBe("ok");
    await again.stop();
    expect(attempts).toEqual([1, 1]);
  });

  test("gives back, on a stop, a claim that is still on its way", async () => {
    const attempts: number[] = [];
    const code: Code = async (_event, step) =>
      step.do("a", ({ attempt }) => attempts.push(attempt));
    const { pawl, main, start, calls, line } = open(code, { poll: never });
    await pawl.migrate();
    const instance = await main.create();
    line.replyInMs = 250;
    const runner = start();
    await until(() => calls.includes("claim"));
    await runner.stop();
    expect((await instance.status()).status).toBe("queued");
    const again = start();
    await instance.result({ timeout });
    await again.stop();
    expect(attempts).toEqual([1]);
  });

  test("gives back, on a stop, a run that is being created in place", async () => {
    const attempts: number[] = [];
    const code: Code = async (_event, step) =>
      step.do("a", ({ attempt }) => attempts.push(attempt));
    const { main, start, runner, calls, line } = await running(code, { poll: never });
    line.replyInMs = 250;
    const creating = main.create();
    await until(() => calls.includes("create"));
    await runner.stop();
    const instance = await creating;
    expect((await instance.status()).status).toBe("queued");
    const again = start();
    await instance.result({ timeout });
    await again.stop();
    expect(attempts).toEqual([1]);
  });

  test("asks the store nothing once stopped, and may be stopped twice", async () => {
    const { pawl, runner, calls } = await running(wait, { poll: { minMs: 10, maxMs: 10 } });
    await Promise.all([runner.stop(), runner.stop()]);
    calls.length = 0;
    pawl.wake();
    await pause(60);
    expect(calls).toEqual([]);
  });

  test("asks the store nothing once closed, and refuses to start again", async () => {
    const { pawl, runner, start, calls, events } = await running(wait, {
      poll: { minMs: 1, maxMs: 5 },
    });
    await pawl.close();
    calls.length = 0;
    await pause(60);
    expect([calls, events]).toEqual([[], []]);
    expect(start).toThrow(StoreClosedError);
    await runner.stop();
    expect(events).toEqual([]);
  });

  test("refuses a second runner until the first has stopped", async () => {
    const gate = new Gate();
    const code: Code = (_event, step) => step.do("a", () => gate.enter());
    const { main, runner, start } = await running(code, { poll: never });
    const refused = "these workflows have a runner already";
    expect(start).toThrow(refused);
    const held = await main.create();
    await until(() => gate.entries === 1);
    const stopped = runner.stop();
    expect(start).toThrow(refused);
    gate.open();
    await stopped;
    const again = start();
    await held.result({ timeout });
    await again.stop();
  });

  test("refuses to stop with an invalid timeout", async () => {
    const { main, runner } = await running(async () => "ok", { poll: never });
    for (const timeoutMs of [Infinity, Number.NaN, -1, 2 ** 31, "10" as never]) {
      await expect(runner.stop({ timeoutMs })).rejects.toThrow(
        "stop: timeoutMs must be a whole number from 0 to 2147483647",
      );
    }
    expect(await (await main.create()).result({ timeout })).toBe("ok");
  });

  test("takes a retryAfter date as a moment of the database's clock", async () => {
    const hour = 3_600_000;
    for (const aheadMs of [hour, -hour]) {
      const handle = openSqlite(":memory:");
      const databaseNow = (): number => Date.now() + aheadMs;
      const store = sqliteStore(handle, { clock: { now: databaseNow } });
      const began: number[] = [];
      const code: Code = (_event, step) =>
        step.do("a", { retries: { limit: 1, delay: 0 } }, () => {
          began.push(performance.now());
          if (began.length > 1) return;
          throw Object.assign(new Error("busy"), { retryAfter: new Date(databaseNow() + 300) });
        });
      const pawl = createWorkflows({ workflows: { MAIN: { name: "main", run: code } }, store });
      await pawl.migrate();
      const runner = startRunner(pawl);
      await (await pawl.workflows.MAIN.create()).result({ timeout });
      const [first = 0, second = 0] = began;
      expect(second - first).toBeGreaterThan(250);
      await runner.stop();
      await pawl.close();
      handle.close();
    }
  });

  test("reports when a held run will be tried again", async () => {
    const handle = openSqlite(":memory:");
    const process = (code: Code) =>
      createWorkflows({
        workflows: { MAIN: { name: "main", run: code } },
        store: sqliteStore(handle),
        onDivergence: "hold",
      });
    const first = process(wait);
    await first.migrate();
    const instance = await first.workflows.MAIN.create();
    await first.tick();
    await first.close();
    // The new code uses the same name for another kind of step.
    const second = process(async (_event, step) => step.do("wait", () => "other"));
    await (await second.workflows.MAIN.get(instance.id)).sendEvent({ type: "go" });
    const wakes: number[] = [];
    second.runner.serve((inMs) => wakes.push(inMs));
    await (
      await second.runner.start()
    ).done;
    const held = expect.toSatisfy((ms: number) => ms > 50_000 && ms < 61_000);
    expect(wakes.at(-1)).toEqual(held);
    expect(await second.runner.nextWakeInMs()).toEqual(held);
    await second.close();
    handle.close();
  });

  test("reports a claim that no turn can be made of, and goes on with the others", async () => {
    const handle = openSqlite(":memory:");
    const own = sqliteStore(handle);
    const logged: string[] = [];
    const log = (event: string): void => void logged.push(event);
    const logger: Logger = { debug() {}, info: log, warn: log, error: log };
    const gate = new Gate();
    const code: Code = async (event, step) => {
      if (event.payload?.held !== true) return "ok";
      // The run parks, and then its own code goes on.
      await Promise.race([step.sleep("nap", "1 hour"), gate.enter()]);
      return step.do("after", () => "held");
    };
    const store: Store<SqliteHandle> = { ...own, reopen: async () => [null as never] };
    const workflows = { MAIN: { name: "main", run: code } } as const;
    const pawl = createWorkflows({ workflows, store, logger });
    await pawl.migrate();
    const runner = startRunner(pawl);
    const { MAIN } = pawl.workflows;
    const held = await MAIN.create({ params: { held: true } });
    await until(async () => (await held.status()).status === "waiting");
    gate.open();
    await until(() => logged.includes("turn.failed"));
    expect(await (await MAIN.create()).result({ timeout })).toBe("ok");
    await runner.stop();
    await pawl.close();
    handle.close();
  });

  test("refuses invalid options", () => {
    const { start } = open(wait, { concurrency: 0 });
    expect(start).toThrow("concurrency must be a whole number from 1");
    const misspelt = open(async () => 1, { concurency: 1 } as StartRunnerOptions);
    expect(misspelt.start).toThrow(
      'startRunner: unknown option "concurency"; the options are concurrency, poll, leaseMs, listen',
    );
    const inPoll = open(async () => 1, { poll: { min: 1 } } as StartRunnerOptions);
    expect(inPoll.start).toThrow(
      'startRunner: poll: unknown option "min"; the options are minMs, maxMs',
    );
    const { start: other } = open(wait, { poll: { minMs: 100, maxMs: 50 } });
    expect(other).toThrow("poll must have 1 <= minMs <= maxMs");
    for (const leaseMs of [0, 999, 1_000.5, 3_600_001, Number.NaN, Infinity]) {
      const { start: third } = open(wait, { leaseMs });
      expect(third).toThrow("leaseMs must be a whole number from 1000 to 3600000");
    }
  });
});
