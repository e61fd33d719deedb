import { storeConformance } from "pawl/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundled, volatileWorkerd, worker } from "./support/workerd.js";

describe("the store in a Durable Object, in workerd", () => {
  let opened: Awaited<ReturnType<typeof volatileWorkerd>>;

  beforeAll(async () => {
    opened = await volatileWorkerd(await bundled(worker("conformance")), "Conformance");
  });
  afterAll(() => opened.end());

  for (const { name, needsTransactions } of storeConformance) {
    if (needsTransactions === true) continue;
    test(name, async () => {
      const { server } = opened;
      const answer = await server.dispatchFetch("http://object/", { method: "POST", body: name });
      expect({ status: answer.status, text: await answer.text() }).toEqual({
        status: 204,
        text: "",
      });
    });
  }
});
