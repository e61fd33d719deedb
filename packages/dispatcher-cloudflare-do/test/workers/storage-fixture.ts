import { durableObjectStore } from "pawl/durable-object";
import type { StoreFixture } from "pawl/testing";

/** Databases in an object's own storage, by the prefix of their tables. */
export function storageFixture(storage: DurableObjectStorage): StoreFixture {
  let databases = 0;
  // Emptying tables is quicker than making them, so only those that a case migrates itself are always new.
  const emptied: string[] = [];
  return {
    async open({ clock, migrate = true } = {}) {
      const tablePrefix = (migrate ? emptied.pop() : undefined) ?? `pawl${++databases}_`;
      const connect = () =>
        durableObjectStore(storage, { tablePrefix, ...(clock === undefined ? {} : { clock }) });
      const store = connect();
      if (migrate) await store.migrate();
      return {
        store,
        oneWriter: true,
        connect: async () => connect(),
        begin: () => Promise.reject(new Error("an object has no transactions to pass on")),
        async destroy() {
          empty(storage, tablePrefix);
          if (migrate) emptied.push(tablePrefix);
        },
      };
    },
  };
}

function empty({ sql }: DurableObjectStorage, tablePrefix: string): void {
  const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'");
  for (const { name } of tables.toArray()) {
    const isOurs = name.startsWith(tablePrefix) && name !== `${tablePrefix}meta`;
    if (isOurs) sql.exec(`DELETE FROM ${name}`);
  }
}
