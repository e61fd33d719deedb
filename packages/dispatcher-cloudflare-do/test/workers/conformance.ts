import { DurableObject } from "cloudflare:workers";
import { storeConformance } from "pawl/testing";
import { storageFixture } from "./storage-fixture.js";
import { theObject, told } from "./told.js";

/** Plays cases of the conformance suite on its own storage, one at a time. */
export class Conformance extends DurableObject {
  readonly #fixture = storageFixture(this.ctx.storage);

  override fetch(request: Request): Promise<Response> {
    return told(async () => {
      const name = await request.text();
      const found = storeConformance.find((each) => each.name === name);
      if (found === undefined) throw new Error(`there is no case ${name}`);
      await found.run(this.#fixture);
    });
  }
}

export default theObject;
