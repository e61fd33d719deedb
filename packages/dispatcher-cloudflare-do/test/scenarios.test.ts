import { afterAll, describe, expect, test } from "vitest";
import { bundled, volatileWorkerd, worker } from "./support/workerd.js";

const noTransactions = "an object has no transactions that can be passed on";
/** The scenarios that make no sense in an object, by the ends of their names, and why. */
const elsewhere: Readonly<Record<string, string>> = {
  "an instance created in a user's transaction exists once that transaction commits":
    noTransactions,
  "an event sent in a user's transaction counts from its commit, and never after a rollback":
    noTransactions,
  "follow a user's transaction: commit": noTransactions,
  "follow a user's transaction: rollback": noTransactions,
  "a NonRetryableError from a second copy of the module ends the step at once, too":
    "a worker is one bundle, with one copy of each module",
};
const withoutFlag: typeof elsewhere = {
  ...elsewhere,
  "an attempt joins the inner step that the previous attempt began before it timed out":
    "it takes AsyncLocalStorage to know that the step is an inner one",
};

const script = await bundled(worker("scenarios"), { vitest: worker("vitest") });

describe.each([
  ["without flags", [], withoutFlag],
  ["with nodejs_compat", ["nodejs_compat"], elsewhere],
])("the engine's scenarios in a Durable Object, %s", async (_flags, compatibilityFlags, left) => {
  const { server, end } = await volatileWorkerd(script, "Scenarios", { compatibilityFlags });
  afterAll(() => end());
  const listed = await server.dispatchFetch("http://object/");
  const names = (await listed.json()) as string[];
  const isLeft = (name: string): boolean => (name.split(" > ").at(-1) ?? "") in left;

  for (const name of names.filter((each) => !isLeft(each))) {
    test(name, async () => {
      const answer = await server.dispatchFetch("http://object/", { method: "POST", body: name });
      expect(await answer.text()).toBe("");
      expect(answer.status).toBe(204);
    });
  }

  test("all other scenarios are played", () => {
    expect(names.filter(isLeft)).toHaveLength(Object.keys(left).length);
    expect(names.length).toBeGreaterThan(390);
  });
});
