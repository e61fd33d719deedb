import { afterAll, beforeAll, expect, test } from "vitest";
import { Scope } from "../../../pawl/test/support/scope.js";
import { canStartServers, stores } from "../../../pawl/test/support/servers.js";
import { compileProcess } from "../support/compile.js";
import { chaos } from "./chaos.js";

/* npm run chaos -- --store postgres --seconds 60 --seed 7 */

const seconds = Number(process.env["PAWL_CHAOS_SECONDS"] ?? 20);
const seed = Number(process.env["PAWL_CHAOS_SEED"] ?? 1);

let file: string;
const scope = new Scope();
beforeAll(async () => {
  file = await compileProcess(scope, "dispatcher-node/test/chaos/worker.ts");
});
afterAll(() => scope.end());

// A server that was given by URL must not be broken.
const breakable = stores.filter((kind) => kind === "sqlite" || canStartServers);

test.each(breakable)(
  "chaos on %s: nothing is lost",
  async (kind) => {
    const { happened, ...report } = await chaos({ kind, seconds, seed, file });
    console.log(`${kind}: ${describe(report)}; ${describe(happened)}`);
    expect(report.lost).toBe(0);
    expect(report.instances).toBeGreaterThan(0);
  },
  (seconds + 240) * 1_000,
);

function describe(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([what, count]) => `${what} ${count}`)
    .join(", ");
}
