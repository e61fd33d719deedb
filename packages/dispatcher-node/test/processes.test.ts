import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { inScope, Scope } from "../../pawl/test/support/scope.js";
import { stores } from "../../pawl/test/support/servers.js";
import { until } from "../../pawl/test/support/until.js";
import { stage } from "./support/apps.js";
import { compileProcess } from "./support/compile.js";

/* Real processes, ended as processes are: by signals they can answer, and by those they cannot. */

const timeout = "30 seconds";
const all = ["first", "gated", "last"];

let app: string;
const scope = new Scope();
beforeAll(async () => {
  app = await compileProcess(scope, "dispatcher-node/test/support/app.ts");
});
afterAll(() => scope.end());

describe.each(stores)("processes on %s", (kind) => {
  test("SIGTERM: running bodies end, nothing more begins, exit 0; another process goes on, and no attempt is lost", () =>
    inScope(async (own) => {
      const { work, open, traced, ledger, start } = await stage(own, kind);
      const first = await start(app);
      const instance = await work.create({ params: { gate: "go" } });
      await traced({ step: "gated" });
      first.signal("SIGTERM");
      // The process goes on, and was not killed by the signal.
      await expect(
        Promise.race([first.exited(), new Promise((resolve) => setTimeout(resolve, 200, "runs"))]),
      ).resolves.toBe("runs");
      open("go");
      expect(await first.exited()).toEqual({ code: 0, signal: null });
      expect((await instance.status()).status).toBe("queued");
      const second = await start(app);
      expect(await instance.result({ timeout })).toEqual(all);
      expect(ledger().map(({ pid, step, attempt }) => [pid, step, attempt])).toEqual([
        [first.pid, "first", 1],
        [first.pid, "gated", 1],
        [second.pid, "last", 1],
      ]);
    }));

  test("SIGINT: a body that outlasts the drain is cut off, exit 0, and costs no attempt", () =>
    inScope(async (own) => {
      const { work, open, traced, ledger, start } = await stage(own, kind);
      const first = await start(app, { drainMs: 50 });
      const instance = await work.create({ params: { gate: "go" } });
      await traced({ step: "gated" });
      first.signal("SIGINT");
      expect(await first.exited()).toEqual({ code: 0, signal: null });
      open("go");
      const second = await start(app);
      expect(await instance.result({ timeout })).toEqual(all);
      const gated = ledger().filter(({ step }) => step === "gated");
      expect(gated.map(({ pid, attempt, what }) => [pid, attempt, what])).toEqual([
        [first.pid, 1, "began"],
        [first.pid, 1, "aborted"],
        [second.pid, 1, "began"],
      ]);
    }));

  test("a second signal ends the process at once", () =>
    inScope(async (own) => {
      const { work, traced, start } = await stage(own, kind);
      const only = await start(app, { drainMs: 600_000 });
      await work.create({ params: { gate: "never" } });
      await traced({ step: "gated" });
      only.signal("SIGTERM");
      only.signal("SIGINT");
      const { code } = await only.exited();
      // 130, or 143 if they came in the other order.
      expect([130, 143]).toContain(code);
    }));

  test("kill -9: an idle process takes over when the lease has run out, and charges one attempt", () =>
    inScope(async (own) => {
      const leaseMs = 2_000;
      const { work, open, traced, ledger, start } = await stage(own, kind);
      const first = await start(app, { leaseMs });
      const instance = await work.create({ params: { gate: "go" } });
      await traced({ step: "gated" });
      const second = await start(app, { leaseMs });
      first.signal("SIGKILL");
      const killedAt = performance.now();
      expect(await first.exited()).toEqual({ code: null, signal: "SIGKILL" });
      await traced({ step: "gated", pid: second.pid });
      const tookMs = performance.now() - killedAt;
      open("go");
      expect(await instance.result({ timeout })).toEqual(all);
      expect(ledger().map(({ pid, step, attempt }) => [pid, step, attempt])).toEqual([
        [first.pid, "first", 1],
        [first.pid, "gated", 1],
        [second.pid, "gated", 2],
        [second.pid, "last", 1],
      ]);
      // The lease was renewed up to a third of it before. The poll of the second process is 10 minutes.
      expect(tookMs).toBeGreaterThan(leaseMs / 2);
      expect(tookMs).toBeLessThan(leaseMs * 5);
    }));

  test("SIGSTOP past its lease and SIGCONT: a process finds out, aborts its bodies, and goes on as another runner", () =>
    inScope(async (own) => {
      const { work, open, traced, ledger, start } = await stage(own, kind);
      const frozen = await start(app, { leaseMs: 1_000 });
      const instance = await work.create({ params: { gate: "go" } });
      await traced({ step: "gated" });
      frozen.signal("SIGSTOP");
      const heir = await start(app, { leaseMs: 1_000 });
      await traced({ step: "gated", pid: heir.pid });
      frozen.signal("SIGCONT");
      await traced({ step: "gated", pid: frozen.pid, what: "aborted" });
      await until(() => frozen.events.some(({ event }) => event === "runner.died"), "dead");
      open("go");
      expect(await instance.result({ timeout })).toEqual(all);
      // The dead runner's result was not stored: the heir ran the last step, and nobody ran it twice.
      expect(ledger().filter(({ step }) => step === "last")).toMatchObject([{ pid: heir.pid }]);
      heir.signal("SIGTERM");
      expect(await heir.exited()).toEqual({ code: 0, signal: null });
      expect(await (await work.create()).result({ timeout })).toEqual(all);
      expect(ledger().at(-1)).toMatchObject({ pid: frozen.pid, step: "last" });
    }));
});
