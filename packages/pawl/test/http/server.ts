import { serve } from "@hono/node-server";
import type { AddressInfo } from "node:net";
import {
  createWorkflows,
  type Registry,
  type Store,
  type WorkflowsOptions,
  type Workflows,
} from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { DatabaseSync } from "@photostructure/sqlite";
import { startRunner } from "@pawl/dispatcher-node";
import type { Scope } from "../support/scope.js";

export type Served<R extends Registry> = {
  readonly pawl: Workflows<R, unknown>;
  /** The URL of the API, with its base path. */
  readonly url: string;
};

type ServeOptions<R extends Registry> = WorkflowsOptions<R, unknown> & {
  readonly store?: Store;
  /** If false, nothing runs by itself. */
  readonly run?: boolean;
};

/** Serves the API from a real server on a port of its own, by default on SQLite in memory. */
export async function served<const R extends Registry>(
  scope: Scope,
  options: ServeOptions<R>,
): Promise<Served<R>> {
  const { run = true, store = memoryStore(scope), ...engine } = options;
  const pawl = createWorkflows({ ...engine, store } as unknown as WorkflowsOptions<R, unknown> & {
    readonly store: Store;
  });
  await pawl.migrate();
  scope.defer(() => pawl.close());
  if (run) {
    const runner = startRunner(pawl);
    scope.defer(() => runner.stop({ timeoutMs: 100 }));
  }
  return { pawl, url: `${await listening(scope, pawl.fetch)}${options.basePath ?? "/api"}` };
}

export async function listening(
  scope: Scope,
  fetch: (request: Request) => Promise<Response>,
): Promise<string> {
  const server = await new Promise<ReturnType<typeof serve>>((resolve) => {
    const starting = serve({ fetch, port: 0, hostname: "127.0.0.1" }, () => resolve(starting));
  });
  scope.defer(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        if ("closeAllConnections" in server) server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export function memoryStore(scope: Scope): Store {
  const handle = new DatabaseSync(":memory:");
  scope.defer(() => handle.close());
  return sqliteStore(handle);
}
