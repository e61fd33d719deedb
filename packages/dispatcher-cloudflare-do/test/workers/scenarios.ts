import { DurableObject } from "cloudflare:workers";
import { scenarios } from "../../../pawl/test/scenarios/scenarios.js";
import { storageFixture } from "./storage-fixture.js";
import { theObject, told } from "./told.js";
import { collected, run } from "./vitest.js";

/** Plays the engine's scenarios on its own storage, one at a time: GET names them, POST plays the one that is named. */
export class Scenarios extends DurableObject {
  readonly #tests = collected(() => scenarios("in an object", storageFixture(this.ctx.storage)));

  override async fetch(request: Request): Promise<Response> {
    if (request.method === "GET") return Response.json([...this.#tests.keys()]);
    return told(async () => {
      const name = await request.text();
      const test = this.#tests.get(name);
      if (test === undefined) throw new Error(`there is no scenario ${name}`);
      await run(test);
    });
  }
}

export default theObject;
