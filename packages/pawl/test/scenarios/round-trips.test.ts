import mysql from "mysql2";
import pg from "pg";
import { afterAll, afterEach, describe, expect, test, vi } from "vitest";
import { ifAsked } from "../conformance/conforms.js";
import { mysqlFamily, postgres, type ServerFixture } from "../fixtures.js";
import { stage, type Code } from "./stage.js";

// These tests count what a run costs at the driver: the statements sent to the server, and the commits among
// them.

const stepsCode: Code = async (event, step) => {
  for (let n = 0; n < event.payload; n++) await step.do(`step ${n}`, () => 1);
  return "done";
};

type Spied = { readonly statements: string[] };

function watching(targets: readonly { prototype: object; methods: readonly string[] }[]): Spied {
  const statements: string[] = [];
  for (const { prototype, methods } of targets) {
    for (const method of methods) {
      const original = Reflect.get(prototype, method) as (...args: unknown[]) => unknown;
      vi.spyOn(prototype as Record<string, () => unknown>, method).mockImplementation(function (
        this: unknown,
        ...args: unknown[]
      ) {
        const [given] = args as [string | { text?: string; sql?: string }];
        const text = typeof given === "string" ? given : (given.text ?? given.sql ?? "");
        statements.push(text.trim().replaceAll(/\s+/g, " "));
        return original.apply(this, args);
      });
    }
  }
  return { statements };
}

const pgClients = [{ prototype: pg.Client.prototype, methods: ["query"] }];
const mysqlConnections = [
  {
    prototype: (mysql as unknown as { Connection: { prototype: object } }).Connection.prototype,
    methods: ["query", "execute"],
  },
];

/**
 * SHOW and DISCARD renew plans once a second, and LISTEN opens a line for hints at any time. None is a write.
 */
const isWrite = (text: string): boolean => !/^(SELECT|SET|SHOW|DISCARD|LISTEN)\b/i.test(text);

async function inProcess(on: ServerFixture, k: number, spy: () => Spied): Promise<string[]> {
  const s = await stage(on, stepsCode);
  await s.h.tick();
  s.h.runner.serve(() => {});
  // The first run is not counted: it opens connections and prepares statements.
  await (await s.create(1)).result();
  const { statements } = spy();
  const i = await s.create(k);
  expect(await i.result()).toBe("done");
  return statements;
}

/**
 * Returns the statements that insert instances while `count` callers create one each, without waiting for
 * each other.
 */
async function creating(on: ServerFixture, count: number, spy: () => Spied): Promise<string[]> {
  const s = await stage(on, stepsCode);
  await s.create(0);
  const { statements } = spy();
  await Promise.all(Array.from({ length: count }, () => s.create(0)));
  return statements.filter((text) => /INSERT INTO \S*instance\S* \(iid/.test(text));
}

afterEach(() => void vi.restoreAllMocks());

ifAsked("postgres", (url) => {
  describe("PostgreSQL", () => {
    const on = postgres(url);
    afterAll(() => on.dispose());

    test.each([1, 5, 50])("a run of %i steps takes one statement per commit", async (k) => {
      const statements = await inProcess(on, k, () => watching(pgClients));
      expect(statements.filter(isWrite), statements.join("\n")).toHaveLength(k + 1);
      // No transaction spans round trips.
      expect(statements.filter((text) => /^(BEGIN|COMMIT)/.test(text))).toEqual([]);
    });

    test("concurrent creates take one statement for all", async () => {
      expect(await creating(on, 50, () => watching(pgClients))).toHaveLength(1);
    });
  });
});

for (const store of ["mariadb", "mysql"] as const) {
  ifAsked(store, (url) => {
    describe(store, () => {
      const on = mysqlFamily(url);
      afterAll(() => on.dispose());

      test.each([1, 5, 50])("a run of %i steps: one commit a step and one to start", async (k) => {
        const statements = await inProcess(on, k, () => watching(mysqlConnections));
        expect(statements.filter((text) => text === "COMMIT")).toHaveLength(k + 1);
        const transactions = statements.join("\n").split("COMMIT").slice(0, -1);
        for (const each of transactions) {
          const own = each.split("\n").filter((text) => text !== "" && !text.startsWith("SET "));
          expect(own.length).toBeLessThanOrEqual(6);
        }
      });

      test("concurrent creates take one transaction for all", async () => {
        expect(await creating(on, 50, () => watching(mysqlConnections))).toHaveLength(1);
      });
    });
  });
}
