import { expect, test } from "vitest";
import { aHost } from "./support/host.js";

const PATIENCE = { timeout: 30_000, interval: 5 };

test("kill -9 of workerd under load loses nothing, and repeats only what had begun", async ({
  onTestFinished,
}) => {
  const host = await aHost({ onTestFinished });
  const ids = Array.from({ length: 20 }, (_, n) => `run-${n}`);
  const params = { steps: 10 };
  await Promise.all(ids.map((id) => host.do("create", { binding: "STEPS", id, params })));
  for (const begun of [20, 60]) {
    await expect.poll(() => host.ledger.length, PATIENCE).toBeGreaterThan(begun);
    await host.kill();
    await host.start();
  }
  for (const id of ids) {
    expect(await host.do("result", { binding: "STEPS", id })).toBe(55);
  }
  for (const id of ids) {
    const page = await host.fetch(`/api/workflows/steps/instances/${id}/history?pageSize=100`);
    const { entries } = (await page.json()) as { entries: { name: string; status: string }[] };
    expect(entries.map(({ name }) => name)).toEqual(
      Array.from({ length: 10 }, (_, n) => `step ${n + 1}`),
    );
    // Each begun attempt has a number of its own.
    const begun = host.ledger.filter((line) => line.startsWith(`${id} `));
    expect(new Set(begun).size).toBe(begun.length);
  }
});
