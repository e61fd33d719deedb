import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { examplesIn, wholeOf } from "../../packages/dispatcher-node/test/quoted.js";

test("the example of the README runs", async () => {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "pawl-readme-"));
  const log = vi.spyOn(console, "log").mockImplementation(() => {});
  process.chdir(folder);
  try {
    await import("./main.js");
    expect(log.mock.calls).toEqual([[{ payment: "42 from ada@example.org", approvedBy: "Grace" }]]);
  } finally {
    log.mockRestore();
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
});

test("the README has this example and no other", () => {
  expect(examplesIn("README.md")).toEqual([wholeOf("examples/quick-start/main.ts")]);
});
