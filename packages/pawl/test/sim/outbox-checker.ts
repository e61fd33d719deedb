import { must, type Snapshot } from "./checker.js";

export type OutboxRow = {
  readonly id: string;
  readonly hook: string;
  readonly instance_id: string;
  readonly run_no: number;
  readonly reason: string;
};

export type Posted = Pick<Snapshot, "instances"> & {
  readonly outbox: readonly OutboxRow[];
  /** The names of the registered hooks. */
  readonly hooks: readonly string[];
};

/** A call of a hook. */
export type Told = {
  readonly id: string;
  readonly instanceId: string;
  readonly runNumber: number;
  readonly reason: string;
};

/** Checks that a row for a hook is there if and only if its cause is, until the hook was told. */
export class OutboxChecker {
  #before: Posted | null = null;
  readonly #written = new Map<string, OutboxRow>();
  readonly #told = new Map<string, number>();
  readonly #done = new Set<string>();

  /** Checks every committed state. One change lies between it and the last one. */
  state(snapshot: Posted): void {
    const before = this.#before;
    this.#before = snapshot;
    const left = new Set(snapshot.outbox.map(({ id }) => id));
    const expected = before === null ? [] : causesBetween(before, snapshot);
    for (const [id, hook] of expected) {
      if (!before?.hooks.includes(hook)) continue;
      must(left.has(id), () => `${id} was caused, and nothing tells of it`);
    }
    const caused = new Set(expected.map(([id]) => id));
    for (const row of snapshot.outbox) {
      if (this.#written.has(row.id)) continue;
      this.#written.set(row.id, row);
      const isPlain = row.reason === "event" || row.reason === "resume";
      must(isPlain || caused.has(row.id), () => `${row.id} tells of what did not happen`);
    }
    for (const id of this.#written.keys()) {
      must(left.has(id) || this.#done.has(id), () => `${id} is gone, and nobody was told`);
    }
  }

  /** Checks the call of a hook. */
  calls({ id, ...facts }: Told): void {
    const row = this.#written.get(id);
    const { instance_id: instanceId, run_no: runNumber, reason } = row ?? ({} as OutboxRow);
    const isSo =
      row !== undefined &&
      JSON.stringify(facts) === JSON.stringify({ instanceId, runNumber, reason });
    must(isSo, () => `a hook is told ${id} ${JSON.stringify(facts)}, and that is not written`);
    this.#told.set(id, (this.#told.get(id) ?? 0) + 1);
  }

  done(id: string): void {
    this.#done.add(id);
  }

  /** Returns how many were told, and how many more than once. */
  end(): { readonly told: number; readonly again: number } {
    for (const id of this.#written.keys()) {
      must(this.#done.has(id), () => `no hook was ever told of ${id}`);
    }
    const again = [...this.#told.values()].filter((times) => times > 1).length;
    return { told: this.#told.size, again };
  }
}

type Cause = readonly [id: string, hook: string];

/** Returns the causes whose rows have ids that can be derived. */
function causesBetween(before: Posted, { instances }: Posted): Cause[] {
  const known = new Map(before.instances.map((row) => [row.iid, row]));
  return instances.flatMap((row): Cause[] => {
    const old = known.get(row.iid);
    if (old === undefined) return [[`create.1.${row.iid}`, "onWorkflowEnqueued"]];
    if (row.run_no > old.run_no) {
      return [[`restart.${row.run_no}.${row.iid}`, "onWorkflowEnqueued"]];
    }
    const hasEnded = old.status === "live" && row.status !== "live";
    return hasEnded ? [[`finish.${row.run_no}.${row.iid}`, "onInstanceFinished"]] : [];
  });
}
