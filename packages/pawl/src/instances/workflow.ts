import { elementOf, validNew, validTx } from "../authoring/binding-options.js";
import type {
  CreateOptions,
  InstanceTypes,
  TxOptions,
  Workflow,
  WorkflowInstance,
} from "../authoring/bindings.js";
import { WorkflowError } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import { validInstanceId } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { Scheduler } from "../model/seams.js";
import type { NewInstance } from "../store/store.js";
import { Instance, type InstanceScope } from "./instance.js";
import type { InstancesContext, ParentRun } from "./ports.js";
import { instanceNotFound, validBatch } from "./requests.js";
import { encodeParams } from "./values.js";

/** One `Workflow` per binding key. */
export type AllBindings<Tx> = Readonly<Record<string, Workflow<unknown, InstanceTypes, Tx>>>;

/** Returns the function that makes all bindings; with a parent, they are for the code of that run. */
export function bindingsMaker<Tx>(
  context: InstancesContext<Tx>,
): (parent?: ParentRun) => AllBindings<Tx> {
  const newId = idMaker(context.runtime);
  const entries = [...context.entries.values()];
  return (parent) =>
    Object.freeze(
      Object.fromEntries(
        entries.map((entry) => [
          entry.binding,
          new WorkflowBinding({ context, entry, parent, newId }),
        ]),
      ),
    );
}

/** One instance that a caller asked for: it has its name, but its params are not checked yet. */
type Wanted = {
  readonly id: string;
  readonly origin?: string;
  readonly params: unknown;
  /** How errors name its params. */
  readonly what?: string;
};

/** The in-process binding of one workflow. */
export class WorkflowBinding<Tx> implements Workflow<unknown, InstanceTypes, Tx> {
  readonly #scope: InstanceScope<Tx>;

  constructor(scope: InstanceScope<Tx>) {
    this.#scope = scope;
  }

  async create(
    options: CreateOptions = {},
    more?: TxOptions<Tx>,
  ): Promise<WorkflowInstance<InstanceTypes, Tx>> {
    const tx = more === undefined ? undefined : validTx("create", more);
    const wanted = this.#named(validNew(options));
    const [isOurs] = await this.#insert([wanted], tx);
    if (isOurs === true) return new Instance(this.#scope, wanted.id, this.#isNew(tx));
    throw new WorkflowError(
      "INSTANCE_ID_ALREADY_EXISTS",
      `workflow ${quote(this.#scope.entry.name)} has an instance ${quote(wanted.id)} already`,
    );
  }

  async createBatch(
    batch: readonly (CreateOptions & { readonly id: string })[],
    options?: TxOptions<Tx>,
  ): Promise<WorkflowInstance<InstanceTypes, Tx>[]> {
    const { limits } = this.#scope.context;
    const tx = options === undefined ? undefined : validTx("createBatch", options);
    const byId = new Map<string, Wanted>();
    for (const [i, item] of validBatch(batch, limits).entries()) {
      const id = validInstanceId(item.id, limits, `${elementOf(i)}.id`);
      if (byId.has(id)) continue;
      byId.set(id, { ...this.#named(item), what: `${elementOf(i)}.params` });
    }
    const wanted = [...byId.values()];
    if (wanted.length === 0) return [];
    const areOurs = await this.#insert(wanted, tx);
    const isNew = this.#isNew(tx);
    return wanted
      .filter((_, i) => areOurs[i])
      .map(({ id }) => new Instance(this.#scope, id, isNew));
  }

  async get(id: string): Promise<WorkflowInstance<InstanceTypes, Tx>> {
    const { context, entry, parent } = this.#scope;
    const target = { workflow: entry.name, id: validInstanceId(id, context.limits) };
    await parent?.barrier();
    if ((await context.store.get(target)) === null) throw instanceNotFound(target);
    return new Instance(this.#scope, id);
  }

  /**
   * Names an instance at the moment of the call: children without an id are numbered in the order in which the code asks
   * for them, whatever it awaits afterwards.
   */
  #named({ id, params }: CreateOptions): Wanted {
    const { context, entry, parent, newId } = this.#scope;
    const given = id === undefined ? undefined : validInstanceId(id, context.limits);
    if (parent !== undefined) {
      const child = parent.nextOrigin(given === undefined ? null : `${entry.name}/${given}`);
      return { id: given ?? child.id, origin: child.origin, params };
    }
    if (given !== undefined) return { id: given, params };
    for (;;) {
      // Internal ids may begin with "-", which the ids of instances may not.
      const made = `i${newId()}`;
      const fits = context.store.fits?.({ workflow: entry.name, id: made });
      if (fits !== false) return { id: made, params };
    }
  }

  /** Answers true for each instance that is there because of this call, or of an earlier attempt of the same step. */
  async #insert(wanted: readonly Wanted[], tx: Tx | undefined): Promise<boolean[]> {
    const { context, entry, parent, newId } = this.#scope;
    if (parent !== undefined) await parent.barrier();
    const rows: NewInstance[] = [];
    for (const { id, origin, params, what } of wanted) {
      const encoded = encodeParams(context, entry, params, what);
      rows.push({
        iid: newId(),
        workflow: entry.name,
        id,
        queue: entry.queue,
        params: encoded instanceof Promise ? await encoded : encoded,
        ...(origin === undefined ? {} : { origin }),
      });
    }
    const answers = await context.store.create(rows, { tx });
    return answers.map((answer, i) => {
      if (answer.kind === "created") return true;
      const origin = rows[i]?.origin;
      return origin !== undefined && answer.existing?.origin === origin;
    });
  }

  /**
   * Answers whether an instance was created in this round of the event loop. Within a transaction nothing is created
   * yet, and a child may have been created by an earlier attempt: then there is no telling.
   */
  #isNew(tx: Tx | undefined): (() => boolean) | undefined {
    const { context, parent } = this.#scope;
    return tx === undefined && parent === undefined ? context.thisRound() : undefined;
  }
}

/**
 * Returns a function that marks the current round of the event loop. The marker that it returns tells whether it is
 * still the same round. Each engine has one such function, and all that ask in a round share a callback.
 */
export function rounds(scheduler: Scheduler): () => () => boolean {
  let current: object | null = null;
  return () => {
    if (current === null) {
      current = {};
      scheduler.round(() => (current = null));
    }
    const round = current;
    return () => round === current;
  };
}
