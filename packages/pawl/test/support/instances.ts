import { DatabaseSync, type DatabaseSyncInstance } from "@photostructure/sqlite";
import { sqliteStore, type SqliteHandle } from "pawl/sqlite";
import { entriesOf } from "../../src/authoring/entry.js";
import type { Registry } from "../../src/authoring/registry.js";
import { Deliverer } from "../../src/hooks/deliverer.js";
import { bindingsMaker, rounds, type AllBindings } from "../../src/instances/workflow.js";
import { LocalStore } from "../../src/instances/local-store.js";
import type {
  EndListener,
  InstancesContext,
  ParentRun,
  StartedInstance,
} from "../../src/instances/ports.js";
import { jsonPlusCodec } from "../../src/model/codec.js";
import { resolveLimits, type Limits } from "../../src/model/limits.js";
import { guardedLogger } from "../../src/model/logger.js";
import { webRuntime } from "../../src/runtime.js";
import { Notices } from "../../src/store/notices.js";
import type { Ended } from "../../src/store/records.js";
import type { Target } from "../../src/model/target.js";
import type { Claimed, Store } from "../../src/store/store.js";
import type { Next, Part } from "../../src/store/part.js";
import { ManualClock } from "../../src/testing/clock.js";
import { aPart } from "../../src/testing/conformance/build.js";

const leaseMs = 60_000;

/** Instances on SQLite in memory, with hints that record what they were told. */
export type InstancesWorld = {
  readonly context: InstancesContext<SqliteHandle>;
  readonly store: Store<SqliteHandle>;
  readonly handle: DatabaseSyncInstance;
  readonly clock: ManualClock;
  readonly hints: Hints;
  readonly notices: Notices;
  readonly workflows: AllBindings<SqliteHandle>;
  inside(parent: ParentRun): AllBindings<SqliteHandle>;
  rows(): number;
  /** Does what a runner does: claims the run if it is not held yet, and writes a part. */
  turn(target: Target, next: Next, given?: Partial<Part>): Promise<void>;
};

export class Hints {
  /** The runner that takes eager starts, if there is one. */
  runner: string | null = null;
  wakes = 0;
  reserved = 0;
  readonly started: StartedInstance[] = [];
  readonly pokes: [owner: string, target: Target][] = [];
  /** Whether other processes would report ends. */
  areOthersHeard = false;
  readonly ends: Target[] = [];
  /** Listeners that were opened, and closed. */
  listeners = 0;
  closed = 0;
  /** How long each wait of `result` was. `meanwhile` is what happens during it. */
  readonly waits: number[] = [];
  isRunHere = false;
  /** How a wait ends. */
  end: Ended | null = null;
  meanwhile: (ms: number) => unknown = () => {
    throw new Error("nobody expected a wait");
  };

  reserve(count: number) {
    if (this.runner === null) return null;
    this.reserved += count;
    return {
      runner: this.runner,
      started: (runs: readonly StartedInstance[]) => {
        this.reserved -= runs.length;
        this.started.push(...runs);
      },
      release: (released: number) => {
        this.reserved -= released;
      },
    };
  }

  wake(): void {
    this.wakes += 1;
  }

  reserveFor(): null {
    return null;
  }

  sent(): boolean {
    return false;
  }

  poke(owner: string, target: Target): void {
    this.pokes.push([owner, target]);
  }

  isHere(): boolean {
    return this.isRunHere;
  }

  ask(): boolean {
    return this.areOthersHeard;
  }

  async left(_target: Target, ms: number): Promise<Ended | null> {
    this.waits.push(ms);
    await this.meanwhile(ms);
    return this.end;
  }

  listen(target: Target): EndListener {
    this.listeners += 1;
    return { heard: (ms) => this.left(target, ms), close: () => void (this.closed += 1) };
  }
}

export async function instancesWorld(
  registry: Registry,
  limitOverrides: Partial<Limits> = {},
): Promise<InstancesWorld> {
  const handle = new DatabaseSync(":memory:");
  const clock = new ManualClock();
  const store = sqliteStore(handle, { clock });
  await store.migrate();
  await store.register("runner", leaseMs);
  const limits = resolveLimits(limitOverrides);
  const hints = new Hints();
  const logger = guardedLogger(undefined);
  const notices = new Notices(logger);
  notices.ended.subscribe(({ workflow, id }) => void hints.ends.push({ workflow, id }));
  const hooks = new Deliverer(store, {}, webRuntime, logger, notices);
  const context: InstancesContext<SqliteHandle> = {
    store: new LocalStore(store, hints, hooks, notices),
    entries: entriesOf(registry, limits),
    codec: jsonPlusCodec,
    limits,
    runtime: { ...webRuntime, clock },
    thisRound: rounds(webRuntime.scheduler),
    ends: hints,
  };
  const held = new Map<string, Claimed>();
  const parts = new Map<string, number>();

  async function claim(): Promise<void> {
    const lanes = Array.from(context.entries.keys(), (handler) => ({ queue: "default", handler }));
    const request = { runner: "runner", lanes, limit: 100, reservedForNew: 0 };
    const answer = await store.claim(request);
    if (answer.kind !== "ok") throw new Error("the runner is dead");
    for (const claimed of answer.claimed) {
      held.set(`${claimed.workflow}/${claimed.id}`, claimed);
      parts.delete(claimed.iid);
    }
  }

  const makeBindings = bindingsMaker(context);
  return {
    context,
    store,
    handle,
    clock,
    hints,
    notices,
    workflows: makeBindings(),
    inside: makeBindings,
    rows: () => handle.prepare("SELECT 1 FROM pawl_instance").all().length,
    async turn(target, next, given = {}) {
      await claim();
      const claimed = held.get(`${target.workflow}/${target.id}`);
      if (claimed === undefined) throw new Error(`${target.id} cannot be claimed`);
      const partNumber = (parts.get(claimed.iid) ?? 0) + 1;
      parts.set(claimed.iid, partNumber);
      const part = aPart(claimed, { partNumber, next, ...given });
      const [answer] = await store.commit([part]);
      if (answer?.kind !== "ok") throw new Error(`the part was answered: ${answer?.kind}`);
    },
  };
}
