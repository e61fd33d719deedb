import { DatabaseSync } from "@photostructure/sqlite";
import type mysql from "mysql2/promise";
import pg from "pg";

/**
 * Makes drivers answer with an error where the server would have: for errors that no other session can bring
 * about at will, and to count tries.
 */
export class Fault {
  /** How often a matching statement was sent. */
  tries = 0;
  #left = 0;
  #error: () => Error = () => new Error("no fault");

  constructor(private readonly matches: (sql: string) => boolean) {}

  /** Makes the next `times` tries fail. */
  fail(times: number, error: () => Error): void {
    this.tries = 0;
    this.#left = times;
    this.#error = error;
  }

  check(sql: string): void {
    if (!this.matches(sql)) return;
    this.tries += 1;
    if (this.#left <= 0) return;
    this.#left -= 1;
    throw this.#error();
  }
}

export const databaseError = (fields: object) => (): Error =>
  Object.assign(new Error("INSERT INTO secrets VALUES ('hunter2')"), fields);

/** A class for `new pg.Pool({ Client })`. */
export function faultyPgClient(fault: Fault): typeof pg.Client {
  return class extends pg.Client {
    override query(...args: unknown[]): never {
      const [config] = args as [{ text: string } | string];
      try {
        fault.check(typeof config === "string" ? config : config.text);
      } catch (error) {
        return Promise.reject(error) as never;
      }
      return (super.query as (...all: unknown[]) => never)(...args);
    }
  };
}

export function faultyMysqlPool(pool: mysql.Pool, fault: Fault): mysql.Pool {
  return intercept(pool, "getConnection", async (connect) => {
    const connection = (await connect()) as mysql.PoolConnection;
    return intercept(connection, "execute", async (execute, options) => {
      fault.check((options as { sql: string }).sql);
      return execute(options);
    });
  });
}

/** Reports each error that the server answers with. */
export function watchMysqlErrors(pool: mysql.Pool, seen: (errno: unknown) => void): mysql.Pool {
  return intercept(pool, "getConnection", async (connect) => {
    const connection = (await connect()) as mysql.PoolConnection;
    return intercept(connection, "execute", async (execute, options) => {
      try {
        return await execute(options);
      } catch (error) {
        seen((error as { errno?: unknown }).errno);
        throw error;
      }
    });
  });
}

function intercept<T extends object>(
  target: T,
  method: string,
  instead: (original: (...args: unknown[]) => unknown, ...args: unknown[]) => unknown,
): T {
  return new Proxy(target, {
    get(_, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      const bound = (value as (...args: unknown[]) => unknown).bind(target);
      return name === method ? (...args: unknown[]) => instead(bound, ...args) : bound;
    },
  });
}

/** A SQLite class. The engine opens its own connection with it. */
export function faultySqlite(
  fault: Fault,
): new (path: string) => InstanceType<typeof DatabaseSync> {
  return class extends DatabaseSync {
    override exec(sql: string): void {
      fault.check(sql);
      super.exec(sql);
    }
  };
}
