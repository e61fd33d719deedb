// @ts-check
// Runs all tests; arguments go to vitest. The last line counts them in a form that CI reads.
import { parseCLI, startVitest } from "vitest/node";

const { filter, options } = parseCLI(["vitest", "run", ...process.argv.slice(2)]);
const vitest = await startVitest("test", filter, options);

const count = { passed: 0, failed: 0, skipped: 0 };
for (const file of vitest.state.getTestModules()) {
  // A file that cannot load has no tests, but it has failed.
  if (file.state() === "failed" && file.errors().length > 0) count.failed++;
  for (const test of file.children.allTests()) {
    const { state } = test.result();
    count[state === "pending" ? "skipped" : state]++;
  }
}
count.failed += vitest.state.getUnhandledErrors().length;
await vitest.close();
// Something outside any test failed, such as a server that could not be had.
if (process.exitCode && count.failed === 0) count.failed = 1;

const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : "";
console.log(`${count.passed} passed, ${count.failed} failed${skipped}`);
process.exit(count.failed > 0 ? 1 : process.exitCode);
