import { workflowsOptions, type WorkflowsOptions } from "../authoring/options.js";
import type { Registry } from "../authoring/registry.js";
import { ValidationError } from "../model/errors.js";
import { checkOptions } from "../model/known-options.js";
import { sqliteStore, type SqliteHandle } from "../sqlite.js";
import type { Store } from "../store/store.js";
import { Harness, type HarnessParts } from "./harness.js";
import { openMemorySqlite } from "./memory-sqlite.js";
import { VirtualTime } from "./virtual-time.js";

/** The options of `createWorkflows`, and those of the test. */
export type HarnessOptions<R extends Registry, Tx = SqliteHandle> = WorkflowsOptions<R, Tx> &
  Pick<HarnessParts<R, Tx>, "runner" | "timeoutMs"> & {
    /**
     * A function that makes a store on the harness's clock, or a store that was made on the `clock` given beside it.
     * Default: a SQLite database in memory.
     */
    readonly store?:
      | Store<Tx>
      | ((clock: VirtualTime) => Store<Tx> | Promise<Store<Tx>>)
      | undefined;
    /** The clock that the store was made on. Default: a new one. */
    readonly clock?: VirtualTime | undefined;
  };

/**
 * Returns a harness for testing workflows on a real store with real runners, under a clock that moves only when told,
 * so that a day of sleep takes milliseconds. It migrates the store. Rejects with `ValidationError` for an option that
 * is not allowed, or a store that does not go by the harness's clock.
 *
 * @example
 * ```ts
 * const h = await createHarness({ workflows });
 * await h.workflows.ORDER.create({ id: "o1", params: { email: "a@example.org" } });
 * await h.runUntilIdle();
 * await h.clock.advance("24 hours");
 * await h.waitForStatus("order", "o1", "complete");
 * await h.close();
 * ```
 */
export async function createHarness<const R extends Registry, Tx = SqliteHandle>(
  options: HarnessOptions<R, Tx>,
): Promise<Harness<R, Tx>> {
  const more = { store: true, clock: true, runner: true, timeoutMs: true } as const;
  checkOptions("createHarness", options, { ...workflowsOptions, ...more });
  const { store: given, clock = new VirtualTime() } = options;
  if (typeof given === "object" && options.clock === undefined) {
    throw new ValidationError("a store goes by its own clock: give a function (clock) => store");
  }
  const store = await (given === undefined
    ? // Without a store of its own the caller cannot have chosen another kind of transaction.
      (memoryStore(clock) as Promise<Store> as Promise<Store<Tx>>)
    : typeof given === "function"
      ? given(clock)
      : given);
  await store.migrate();
  if ((await store.now()) !== clock.now()) {
    throw new ValidationError(
      "the store does not go by the harness's clock: make it with { clock }",
    );
  }
  return new Harness<R, Tx>({ ...options, store, clock });
}

async function memoryStore(clock: VirtualTime): Promise<Store<SqliteHandle>> {
  const handle = await openMemorySqlite();
  const store = sqliteStore(handle, { clock });
  const close = async (): Promise<void> => {
    await store.close();
    handle.close();
  };
  return { ...store, close };
}
