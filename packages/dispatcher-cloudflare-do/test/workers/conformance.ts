import { DurableObject } from "cloudflare:workers";
import { durableObjectStore } from "pawl/durable-object";
import { storeConformance, type StoreFixture } from "pawl/testing";

/** Plays cases of the conformance suite on its own storage, one at a time. */
export class Conformance extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    const name = await request.text();
    const found = storeConformance.find((each) => each.name === name);
    if (found === undefined) return new Response(`there is no case ${name}`, { status: 404 });
    try {
      await found.run(this.#fixture);
      return new Response(null, { status: 204 });
    } catch (error) {
      return new Response(error instanceof Error ? error.stack : String(error), { status: 500 });
    }
  }

  #databases = 0;

  /** Emptying tables is quicker than making them: only those that a case migrates itself are new. */
  readonly #fixture: StoreFixture = {
    open: async ({ clock, migrate = true } = {}) => {
      const tablePrefix = migrate ? "pawl_" : `pawl${++this.#databases}_`;
      const connect = () =>
        durableObjectStore(this.ctx.storage, {
          tablePrefix,
          ...(clock === undefined ? {} : { clock }),
        });
      const store = connect();
      if (migrate) await store.migrate();
      return {
        store,
        oneWriter: true,
        connect: async () => connect(),
        begin: () => Promise.reject(new Error("an object has no transactions to pass on")),
        destroy: async () => this.#empty(tablePrefix),
      };
    },
  };

  #empty(tablePrefix: string): void {
    const { sql } = this.ctx.storage;
    const tables = sql.exec<{ name: string }>(
      "SELECT name FROM sqlite_master WHERE type = 'table'",
    );
    for (const { name } of tables.toArray()) {
      const isOurs = name.startsWith(tablePrefix) && name !== `${tablePrefix}meta`;
      if (isOurs) sql.exec(`DELETE FROM ${name}`);
    }
  }
}

type Env = { readonly OBJECTS: DurableObjectNamespace };

export default {
  fetch: (request, { OBJECTS }) => OBJECTS.get(OBJECTS.idFromName("one")).fetch(request),
} satisfies ExportedHandler<Env>;
