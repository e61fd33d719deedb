import { fork } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inScope, Scope } from "../../pawl/test/support/scope.js";
import { until } from "../../pawl/test/support/until.js";
import { compileProcess } from "./support/compile.js";
import type { Ending } from "./support/ending.js";

let program: string;
const scope = new Scope();
beforeAll(async () => {
  program = await compileProcess(scope, "dispatcher-node/test/support/ending.ts");
});
afterAll(() => scope.end());

function start(own: Scope, ending: Ending) {
  const child = fork(program, [ending], {
    execArgv: ["--unhandled-rejections=strict", "--disable-warning=ExperimentalWarning"],
    env: { ...process.env, NODE_OPTIONS: "" },
  });
  const said: unknown[] = [];
  child.on("message", (word) => said.push(word));
  const exited = once(child, "exit");
  own.defer(async () => {
    child.kill("SIGKILL");
    await exited;
  });
  return { child, said, exited };
}

test("close ends a runner, too, so that nothing holds the process and nothing is logged", () =>
  inScope(async (own) => {
    const { said, exited } = start(own, "close");
    expect(await exited).toEqual([0, null]);
    expect(said).toEqual(["hello", "closed"]);
  }));

test.each([
  ["drain", 0],
  ["drain and fail", 1],
] as const)("two drainOnSignals wait for each other: %s, exit %i", (ending, code) =>
  inScope(async (own) => {
    const { child, said, exited } = start(own, ending);
    await until(() => said.includes("ready"), "ready");
    child.kill("SIGTERM");
    await until(() => said.includes("quick"), "the quick one stopped");
    // If anything ended the process too early, it would do so before it takes this message.
    child.send("go");
    expect(await exited).toEqual([code, null]);
    expect(said).toEqual(["ready", "quick", "slow"]);
  }),
);

test("a second signal ends the process without waiting for either", () =>
  inScope(async (own) => {
    const { child, said, exited } = start(own, "drain");
    await until(() => said.includes("ready"), "ready");
    child.kill("SIGTERM");
    await until(() => said.includes("quick"), "draining");
    child.kill("SIGINT");
    expect(await exited).toEqual([130, null]);
    expect(said).not.toContain("slow");
  }));
