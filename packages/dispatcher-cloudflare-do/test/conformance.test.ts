import type { Miniflare } from "miniflare";
import { storeConformance } from "pawl/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bundled, worker, workerd } from "./support/workerd.js";

describe("the store in a Durable Object, in workerd", () => {
  let server: Miniflare;

  beforeAll(async () => {
    server = workerd(await bundled(worker("conformance")), "Conformance");
    await server.ready;
  });
  afterAll(() => server.dispose());

  for (const { name, needsTransactions } of storeConformance) {
    if (needsTransactions === true) continue;
    test(name, async () => {
      const answer = await server.dispatchFetch("http://object/", { method: "POST", body: name });
      expect({ status: answer.status, text: await answer.text() }).toEqual({
        status: 204,
        text: "",
      });
    });
  }
});
