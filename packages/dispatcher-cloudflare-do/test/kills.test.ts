import { expect, test } from "vitest";
import { BareWorkerd } from "./support/bare-workerd.js";
import type { Entry } from "./workers/kills.js";

const PATIENCE = { timeout: 50_000, interval: 20 };
const ROUTE = "/api/workflows/tokens/instances";
const STEPS = 8;

test("kill -9 of workerd under load, again and again, loses nothing that was accepted", async ({
  onTestFinished,
}) => {
  const workerd = await BareWorkerd.of("kills");
  onTestFinished(() => workerd.end());
  const taken: string[] = [];
  const create = async (id: string): Promise<void> => {
    const init = { method: "POST", body: JSON.stringify({ id }) };
    const answer = await workerd.fetch(ROUTE, init).catch(() => null);
    // A create that was not answered may or may not be there. An answered one must be.
    if (answer?.ok === true) taken.push(id);
  };
  // There are fewer kills than times that a run may lose its owner without progress.
  for (let life = 0; life < 4; life++) {
    const before = workerd.ledger.length;
    // Requests are on their way when workerd is killed.
    const creating = Array.from({ length: 12 }, (_, n) => create(`run-${life}-${n}`));
    await expect.poll(() => workerd.ledger.length, PATIENCE).toBeGreaterThan(before + 25);
    creating.push(create(`last-${life}`));
    await workerd.kill();
    await Promise.all(creating);
    await workerd.start();
  }
  expect(taken.length).toBeGreaterThan(24);

  // No request comes: alarms alone bring the object back, and all bodies run.
  const entries = (): Entry[] => workerd.ledger.map((line) => JSON.parse(line) as Entry);
  const begun = (step: number): Set<string> =>
    new Set(entries().flatMap((entry) => (entry.step === step ? entry.id : [])));
  await expect.poll(() => taken.filter((id) => !begun(STEPS).has(id)), PATIENCE).toEqual([]);

  const given = new Map<string, Set<string>>();
  for (const { id, saw } of entries()) {
    for (const [n, token] of saw.entries()) {
      const key = `${id} ${n + 1}`;
      given.set(key, (given.get(key) ?? new Set()).add(token));
    }
  }
  for (const id of taken) {
    const output = async (): Promise<string[] | undefined> => {
      const answer = await workerd.fetch(`${ROUTE}/${id}`);
      return ((await answer.json()) as { details: { output?: string[] } }).details.output;
    };
    await expect.poll(output, PATIENCE).toHaveLength(STEPS);
    const own = entries().filter((entry) => entry.id === id);
    for (const [n, token] of ((await output()) ?? []).entries()) {
      // The output is the one result that was ever given, and of a body that ran.
      const all = new Set([...(given.get(`${id} ${n + 1}`) ?? []), token]);
      expect([...all], `${id} step ${n + 1}`).toEqual([token]);
      expect(own.filter((entry) => entry.step === n + 1).map((entry) => entry.token)).toContain(
        token,
      );
    }
    // Each attempt that began has a number of its own: a kill costs one, and no more than the limit.
    const attempts = own.map(({ step, attempt }) => `${step}.${attempt}`);
    expect(new Set(attempts).size).toBe(attempts.length);
    const page = await workerd.fetch(`${ROUTE}/${id}/history?pageSize=100`);
    const { entries: history } = (await page.json()) as { entries: { name: string }[] };
    expect(history.map(({ name }) => name).toSorted()).toEqual(
      ["nap", ...Array.from({ length: STEPS }, (_, n) => `step ${n + 1}`)].toSorted(),
    );
  }
});
