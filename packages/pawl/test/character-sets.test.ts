import mysql from "mysql2/promise";
import { createWorkflows, defineWorkflow } from "pawl";
import { mysqlStore } from "pawl/mysql";
import { describe, expect, test } from "vitest";
import { database, mysqlPool } from "./support/database.js";
import { inScope, type Scope } from "./support/scope.js";
import { type Kind, servers } from "./support/servers.js";

/* Users' transactions write names and payloads with their own sessions' character sets. */

const name = "größe-日本";

async function world(scope: Scope, kind: Kind) {
  const db = await database(scope, kind);
  const store = mysqlStore(mysqlPool(scope, db.url, db.name));
  const workflows = {
    MAIN: defineWorkflow({
      name,
      run: async (_event, step) =>
        (await step.waitForEvent("wait", { type: "go", timeout: "1 hour" })).payload,
    }),
  };
  const pawl = createWorkflows({ workflows, store });
  scope.defer(() => pawl.close());
  await pawl.migrate();
  const connect = async (options: mysql.ConnectionOptions) => {
    const connection = await mysql.createConnection({
      uri: db.url,
      database: db.name,
      ...options,
    });
    scope.defer(() => connection.end());
    return connection;
  };
  return { pawl, main: pawl.workflows.MAIN, connect };
}

describe.each(servers.filter((kind) => kind !== "postgres"))("a transaction on %s", (kind) => {
  test.each([
    ["from the start", { charset: "UTF8MB4_UNICODE_CI" }],
    ["by SET NAMES", { charset: "LATIN1_SWEDISH_CI" }],
  ])("in utf8mb4, %s, keeps every letter of names, event ids and payloads", (_since, options) =>
    inScope(async (scope) => {
      const { pawl, main, connect } = await world(scope, kind);
      const tx = await connect(options);
      await tx.query("SET NAMES utf8mb4");
      await tx.beginTransaction();
      const instance = await main.create({ id: "a" }, { tx });
      const event = { type: "go", id: "é日😀", payload: "ü日😀" };
      await instance.sendEvent(event, { tx });
      await tx.commit();
      await pawl.tick();
      // The same event is sent once more. It is known by its id.
      await instance.sendEvent({ ...event, payload: "again" }).catch(() => {});
      await pawl.tick();
      expect(await instance.result({ timeout: "20 seconds" })).toBe("ü日😀");
    }),
  );

  test.each([
    ["the driver's", { charset: "LATIN1_SWEDISH_CI" }, null],
    ["the session's", {}, "SET NAMES latin1"],
  ])("in another character set is refused, and stays usable: %s", (_whose, options, sql) =>
    inScope(async (scope) => {
      const { main, connect } = await world(scope, kind);
      const instance = await main.create({ id: "before" });
      const tx = await connect(options);
      if (sql !== null) await tx.query(sql);
      await tx.beginTransaction();
      const refusal = { code: "INVALID_REQUEST", message: expect.stringContaining("utf8mb4") };
      await expect(main.create({ id: "a" }, { tx })).rejects.toMatchObject(refusal);
      const event = { type: "go", id: "é" };
      await expect(instance.sendEvent(event, { tx })).rejects.toMatchObject(refusal);
      await tx.query("SELECT 1");
      await tx.commit();
      await expect(main.get("a")).rejects.toMatchObject({ code: "INSTANCE_NOT_FOUND" });
    }),
  );
});
