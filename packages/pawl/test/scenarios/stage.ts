import { createWorkflows } from "pawl";
import type {
  History,
  InstanceTypes,
  Logger,
  Registry,
  Store,
  Workflow,
  WorkflowEvent,
  WorkflowInstance,
  WorkflowsOptions,
  WorkflowStep,
} from "pawl";
import { createHarness, VirtualTime, type Harness, type HarnessOptions } from "pawl/testing";
import { expect, onTestFinished } from "vitest";
import type { RunnerOptions } from "../../src/runner/options.js";
import type { Runner } from "../../src/runner/runner.js";
import { webRuntime } from "../../src/runtime.js";
import type { StoreFixture, TestDatabase } from "../../src/testing/conformance/index.js";

// Every scenario gets its harness from this file.

type Bindings = Readonly<Record<string, Workflow<unknown, InstanceTypes, unknown>>>;
export type Instance = WorkflowInstance<InstanceTypes, unknown>;
/** Scenarios choose their own params. Inference has tests of its own. */
export type AnyEvent = Omit<WorkflowEvent, "payload"> & { readonly payload: any };

/** A workflow's code, and what it is given. */
export type Code = (
  event: AnyEvent,
  step: WorkflowStep,
  tools: { readonly env: unknown; readonly workflows: Bindings },
) => unknown;

export type LogEntry = { readonly level: string; readonly event: string; readonly fields: object };

export type StageOptions = {
  readonly runner?: Partial<RunnerOptions>;
  /** Wraps the store, and so sees every call to it. */
  readonly around?: (store: Store, clock: VirtualTime) => Store;
};

type EngineOptions = Partial<Omit<WorkflowsOptions<Registry, unknown>, "workflows">>;

/** Forgets every run as soon as it parks, so that each wake is a replay. */
export const evicting = { live: { runs: 0, bytes: 0 } } as const;
/** The two ways to go on after a park. The outcome must be the same. */
export const memories = [
  ["live", {}],
  ["replayed after every park", evicting],
] as const;

type Opened<R extends Registry> = {
  readonly h: Harness<R, unknown>;
  readonly logs: LogEntry[];
  readonly database: TestDatabase;
  /** Another process on the same database, maybe with other code. */
  peer(
    given?: EngineOptions & { readonly workflows?: Registry },
  ): Promise<Harness<Registry, unknown>>;
};

/**
 * Opens an empty database with a clock that stands still and one runner. All of it goes when the test ends.
 */
export async function open<const R extends Registry>(
  fixture: StoreFixture,
  options: WorkflowsOptions<R, unknown> & StageOptions,
): Promise<Opened<R>> {
  const clock = new VirtualTime();
  const database = await fixture.open({ clock });
  onTestFinished(() => database.destroy());
  const { runner, around = (store: Store) => store, ...engine } = options;
  const logs: LogEntry[] = [];
  onTestFinished(() => {
    expect(logs.filter(({ event }) => event === "invariant.broken")).toEqual([]);
  });
  const make = <P extends Registry>(store: Store, given: object): Promise<Harness<P, unknown>> =>
    createHarness<P, unknown>({
      logger: collecting(logs),
      ...engine,
      ...given,
      store: around(store, clock),
      clock,
      // A database that is slow because the whole machine is busy has not failed. A test that hangs should still
      // say where.
      timeoutMs: 40_000,
      ...(runner === undefined ? {} : { runner }),
    } as unknown as HarnessOptions<P, unknown>);
  return {
    h: await make<R>(database.store, {}),
    logs,
    database,
    peer: async (given = {}) => make(await database.connect(), given),
  };
}

export function collecting(logs: LogEntry[]): Logger {
  const at =
    (level: string) =>
    (event: string, fields: object = {}): void =>
      void logs.push({ level, event, fields });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export type Stage = Awaited<ReturnType<typeof stage>>;

/** Opens one workflow, or several by binding key, written as functions. */
export async function stage(
  fixture: StoreFixture,
  code: Code | Readonly<Record<string, Code>>,
  options: EngineOptions & StageOptions = {},
) {
  const all = typeof code === "function" ? { MAIN: code } : code;
  const workflows = registryOf(all);
  const opened = await open(fixture, { ...options, workflows });
  const { h } = opened;
  const bindings = h.workflows as unknown as Bindings;
  const main = bindings[Object.keys(all)[0] as string] as Bindings[string];
  const reader = createWorkflows({ workflows, store: opened.database.store });
  let created = 0;
  let last = h.runner;
  const self = {
    h,
    clock: h.clock,
    logs: opened.logs,
    database: opened.database,
    /** Opens another process, with the same code or with the code given. */
    async peer(changed: Code | Readonly<Record<string, Code>> = all, given: EngineOptions = {}) {
      const by = typeof changed === "function" ? { MAIN: changed } : changed;
      const harness = await opened.peer({ ...given, workflows: registryOf(by) });
      return { h: harness, workflows: harness.workflows as unknown as Bindings };
    },
    workflows: bindings,
    /** The hooks of the same database, as its operators see them. */
    admin: reader.hooks,
    addRunner(): Runner {
      return (last = h.addRunner());
    },
    lastRunner: (): Runner => last,
    /** Creates an instance of the (first) workflow; nothing runs yet. */
    create(params?: unknown, id = `i${++created}`): Promise<Instance> {
      return main.create({ id, params });
    },
    /** Creates an instance, and runs everything that is due. */
    async start(params?: unknown): Promise<Instance> {
      const instance = await self.create(params);
      await h.runUntilIdle();
      return instance;
    },
    /** Lets time pass, and then runs everything that is due. */
    async pass(by: number | string): Promise<void> {
      await h.clock.advance(by);
      await h.runUntilIdle();
    },
    /** Begins a tick, for tests that do something while its turns go on. */
    turn(): Promise<unknown> {
      const turn = h.tick();
      turn.catch(() => {}); // a test that fails before it awaits this turn has said why
      return turn;
    },
    /** Goes from wake to wake to the end of the run, and returns its status. */
    async toEnd(instance: Instance): Promise<Awaited<ReturnType<Instance["status"]>>> {
      for (let n = 0; n < 1_000; n++) {
        await h.runUntilIdle();
        const status = await instance.status();
        if (["complete", "errored", "terminated"].includes(status.status)) return status;
        const { nextWakeInMs } = await h.tick();
        if (nextWakeInMs === null) throw new Error(`nothing will wake it: ${status.status}`);
        await h.clock.advance(nextWakeInMs);
      }
      throw new Error("it does not end");
    },
    async run(params?: unknown): Promise<Awaited<ReturnType<Instance["status"]>>> {
      return self.toEnd(await self.create(params));
    },
    async output(params?: unknown): Promise<unknown> {
      const instance = await self.create(params);
      await self.toEnd(instance);
      return instance.result({ timeout: 0 });
    },
    /** The ids of a workflow's instances, oldest first. */
    async ids(workflow: string): Promise<string[]> {
      const { instances } = await reader.list(workflow, { order: "oldest", pageSize: 100 });
      return instances.map(({ id }) => id);
    },
    history(instance: Instance, runNumber?: number): Promise<History> {
      const name = Object.keys(all)[0]?.toLowerCase() ?? "";
      return reader.history(name, instance.id, { pageSize: 100, runNumber });
    },
    async steps(instance: Instance, runNumber?: number) {
      const { entries } = await self.history(instance, runNumber);
      return entries.filter((entry) => entry.kind === "step");
    },
    async events(instance: Instance, runNumber?: number) {
      const { entries } = await self.history(instance, runNumber);
      return entries.filter((entry) => entry.kind === "event");
    },
  };
  return self;
}

function registryOf(all: Readonly<Record<string, Code>>): Registry {
  const entries = Object.entries(all);
  return Object.fromEntries(entries.map(([key, run]) => [key, { name: key.toLowerCase(), run }]));
}

/** Lets a run act while a call of its process is held and the clock cannot be moved. */
export async function macrotasks(count: number): Promise<void> {
  const { scheduler } = webRuntime;
  for (let n = 0; n < count; n++) {
    await new Promise<void>((resolve) => scheduler.macrotask(resolve));
  }
}

/** Holds whoever awaits it until the test opens it. */
export class Gate<T = void> {
  readonly passed: Promise<T>;
  open!: (value: T) => void;
  fail!: (error: unknown) => void;

  constructor() {
    this.passed = new Promise<T>((resolve, reject) => {
      this.open = resolve;
      this.fail = reject;
    });
    this.passed.catch(() => {});
  }
}

/** A body that says when it was entered, and waits for the test to let it end. */
export class HeldBody<T = unknown> {
  readonly entered = new Gate();
  readonly result = new Gate<T>();
  entries = 0;
  signal: AbortSignal | null = null;

  readonly body = ({ signal }: { signal: AbortSignal }): Promise<T> => {
    this.entries += 1;
    this.signal = signal;
    this.entered.open();
    return this.result.passed;
  };
}
