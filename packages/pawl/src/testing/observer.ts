import type { InstanceStatus } from "../authoring/bindings.js";
import {
  history,
  type History,
  type HistoryEntry,
  type HistoryOptions,
  type HistoryStep,
} from "../instances/history.js";
import { knownWorkflow } from "../instances/list.js";
import type { InstancesContext } from "../instances/ports.js";
import { instanceStatusOf } from "../instances/status.js";
import type { ErrorDescription } from "../model/error-codec.js";
import { validInstanceId } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { StepStatus } from "../model/step-types.js";
import type { Target } from "../model/target.js";

/** Reads instances for a test, and describes them in words. */
export class Observer<Tx> {
  readonly #context: InstancesContext<Tx>;

  constructor(context: InstancesContext<Tx>) {
    this.#context = context;
  }

  bindingOf(workflow: string): string {
    knownWorkflow(this.#context, workflow);
    return this.#context.entries.get(workflow)?.binding ?? "";
  }

  /** Returns the status of an instance, or null if there is none, maybe because it was not created yet. */
  async status(target: Target): Promise<InstanceStatus | null> {
    const { store, codec, limits } = this.#context;
    knownWorkflow(this.#context, target.workflow);
    validInstanceId(target.id, limits);
    const record = await store.get(target);
    return record === null ? null : instanceStatusOf(record, codec);
  }

  /** Returns all pages of a history as one. */
  async history({ workflow, id }: Target, options: HistoryOptions = {}): Promise<History> {
    const entries: HistoryEntry[] = [];
    const pageSize = this.#context.limits.pageSizeMax;
    let page = await history(this.#context, workflow, id, { ...options, pageSize });
    entries.push(...page.entries);
    while (page.cursor !== undefined && page.hasNextPage) {
      const { runNumber, cursor } = page;
      page = await history(this.#context, workflow, id, { runNumber, cursor, pageSize });
      entries.push(...page.entries);
    }
    const { runNumber, runs } = page;
    return { runNumber, runs, entries, hasNextPage: false };
  }

  async step(target: Target, name: string, status: StepStatus): Promise<HistoryStep | undefined> {
    const steps = await this.#steps(target);
    return steps.find((step) => step.name === name && step.status === status);
  }

  /** Returns a message that says what was missed, and where the instance stands instead. */
  async notReached(target: Target, missed: string): Promise<string> {
    const whose = `instance ${quote(target.id)} of workflow ${quote(target.workflow)}`;
    const status = await this.status(target);
    if (status === null) return `${missed}, and nothing is due any more: there is no ${whose}`;
    const steps = (await this.#steps(target)).filter((step) => step.status !== "completed");
    const where = steps.slice(-5).map(standing);
    return [
      `${missed}, and nothing is due any more: ${whose} is ${quote(status.status)}${reason(status)}`,
      ...where,
    ].join("; ");
  }

  async #steps(target: Target): Promise<HistoryStep[]> {
    if ((await this.status(target)) === null) return [];
    const { entries } = await this.history(target);
    return entries.filter((entry) => entry.kind === "step");
  }
}

function standing(step: HistoryStep): string {
  const what = `step ${quote(step.name)} (${step.type}) is ${step.status}`;
  const until = step.wait?.until == null ? "" : ` until ${step.wait.until.toISOString()}`;
  const type = step.wait?.eventType;
  const event = type === undefined ? "" : ` for an event of type ${quote(type)}`;
  return `${what}${event}${until}${reason(step)}`;
}

function reason({ error }: { readonly error?: ErrorDescription }): string {
  return error === undefined ? "" : ` (${error.name}: ${error.message})`;
}
