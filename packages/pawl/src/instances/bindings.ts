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
import { insert, name, type Wanted } from "./create.js";
import { Instance, type InstanceScope } from "./instance.js";
import type { InstancesContext, ParentRun } from "./ports.js";
import { instanceNotFound, validBatch } from "./requests.js";

/** One `Workflow` per binding key. */
export type AllBindings<Tx> = Readonly<Record<string, Workflow<unknown, InstanceTypes, Tx>>>;

/** Makes them; with a parent, for the code of that run. */
export function bindingsMaker<Tx>(
  context: InstancesContext<Tx>,
): (parent?: ParentRun) => AllBindings<Tx> {
  const newId = idMaker(context.runtime);
  const entries = [...context.entries.values()];
  return (parent) =>
    Object.freeze(
      Object.fromEntries(
        entries.map((entry) => [entry.binding, makeBinding({ context, entry, parent, newId })]),
      ),
    );
}

export function makeBinding<Tx>(scope: InstanceScope<Tx>): Workflow<unknown, InstanceTypes, Tx> {
  return new Binding(scope);
}

class Binding<Tx> implements Workflow<unknown, InstanceTypes, Tx> {
  readonly #scope: InstanceScope<Tx>;

  constructor(scope: InstanceScope<Tx>) {
    this.#scope = scope;
  }

  async create(
    options: CreateOptions = {},
    more: TxOptions<Tx> = {},
  ): Promise<WorkflowInstance<InstanceTypes, Tx>> {
    const tx = validTx("create", more);
    const wanted = this.#name(validNew(options));
    const [isOurs] = await this.#insert([wanted], tx);
    if (isOurs === true) return new Instance(this.#scope, wanted.id, this.#isNew(tx));
    throw new WorkflowError(
      "INSTANCE_ID_ALREADY_EXISTS",
      `workflow ${quote(this.#scope.entry.name)} has an instance ${quote(wanted.id)} already`,
    );
  }

  async createBatch(
    batch: readonly (CreateOptions & { readonly id: string })[],
    options: TxOptions<Tx> = {},
  ): Promise<WorkflowInstance<InstanceTypes, Tx>[]> {
    const { limits } = this.#scope.context;
    const tx = validTx("createBatch", options);
    const byId = new Map<string, Wanted>();
    for (const [i, item] of validBatch(batch, limits).entries()) {
      const id = validInstanceId(item.id, limits, `${elementOf(i)}.id`);
      if (byId.has(id)) continue;
      byId.set(id, { ...this.#name(item), what: `${elementOf(i)}.params` });
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

  /** In a transaction nothing is created yet; a child may have been, by an earlier attempt. */
  #isNew(tx: Tx | undefined): (() => boolean) | undefined {
    const { context, parent } = this.#scope;
    return tx === undefined && parent === undefined ? context.thisRound() : undefined;
  }

  #name(options: CreateOptions): Wanted {
    return name(options, this.#scope);
  }

  async #insert(wanted: readonly Wanted[], tx: Tx | undefined): Promise<boolean[]> {
    const { context, entry, parent, newId } = this.#scope;
    if (parent !== undefined) await parent.barrier();
    return insert(context, entry, wanted, newId, tx);
  }
}
