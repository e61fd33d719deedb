import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runtime } from "../../pawl/test/support/runtime.js";
import { Scope } from "../../pawl/test/support/scope.js";
import { compileProcess } from "./support/compile.js";

let program: string;
const scope = new Scope();
beforeAll(async () => {
  program = await compileProcess(scope, "dispatcher-node/test/support/any-runtime.ts");
});
afterAll(() => scope.end());

test.each<[string, readonly string[], () => Promise<string>]>([
  ["this Node", [], async () => process.execPath],
  ["Node 24", [], () => runtime("node", "24.11.1")],
  ["Bun", ["run"], () => runtime("bun", "1.4.3")],
  ["Deno", ["run", "--allow-all"], () => runtime("deno", "2.9.6")],
])("the API, a runner and the client on %s", { timeout: 240_000 }, async (_name, args, find) => {
  const env = { ...process.env, NODE_OPTIONS: "" };
  const { stdout } = await promisify(execFile)(await find(), [...args, program], { env });
  expect(JSON.parse(stdout)).toEqual({
    output: ["1970-01-01T00:00:00.000Z", "1"],
    statuses: [401, 404, 400, 413],
  });
});
