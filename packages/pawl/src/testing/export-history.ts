import type { MadeWith } from "../assemble.js";
import { entriesOf } from "../authoring/entry.js";
import type { RepeatedStepNames } from "../authoring/options.js";
import { knownWorkflow } from "../instances/list.js";
import type { InstancesContext } from "../instances/ports.js";
import { instanceNotFound, invalidRequest } from "../instances/requests.js";
import { validInstanceId } from "../model/names.js";
import type { InstanceStatusName } from "../model/status.js";
import type { DbTime, EventRecord, StepRecord } from "../store/records.js";
import type { Target } from "../model/target.js";
import type { HistoryPage, Store } from "../store/store.js";

/** One run as it is recorded. Its values are the codec's texts, so that it can be kept as JSON whatever they are. */
export type ExportedHistory = {
  readonly format: 1;
  readonly workflow: string;
  readonly id: string;
  readonly iid: string;
  readonly runNumber: number;
  readonly status: InstanceStatusName;
  readonly params: string | null;
  readonly output: string | null;
  readonly error: string | null;
  readonly createdAt: DbTime;
  readonly exportedAt: DbTime;
  readonly repeatedStepNames: RepeatedStepNames;
  readonly steps: readonly StepRecord[];
  readonly events: readonly EventRecord[];
};

type ExportOptions = {
  /** The run to export. Default: the current run. */
  readonly runNumber?: number | undefined;
  readonly repeatedStepNames: RepeatedStepNames;
};

type RecordedEntry<Tx> = Pick<InstancesContext<Tx>, "limits" | "entries"> & {
  readonly store: Pick<Store<Tx>, "get" | "history" | "now">;
};

/**
 * Returns a run of an instance in a real database, for `replay`: the current run, or the one with `runNumber`. `pawl`
 * is what `createWorkflows` returned. Rejects with `INSTANCE_NOT_FOUND` if there is no such instance, with
 * `WORKFLOW_NOT_FOUND` if there is no such workflow, and with `INVALID_REQUEST` if there is no such run.
 *
 * @example
 * ```ts
 * const history = await exportHistoryOf(pawl, "order", "o1");
 * ```
 */
export function exportHistoryOf(
  { options }: { readonly options: MadeWith },
  workflow: string,
  id: string,
  { runNumber }: { readonly runNumber?: number | undefined } = {},
): Promise<ExportedHistory> {
  const { store, limits, repeatedStepNames } = options;
  validInstanceId(id, limits);
  const context = { store, limits, entries: entriesOf(options.workflows, limits) };
  return exportHistory(context, { workflow, id }, { runNumber, repeatedStepNames });
}

export async function exportHistory<Tx>(
  context: RecordedEntry<Tx>,
  target: Target,
  { runNumber: wanted, repeatedStepNames }: ExportOptions,
): Promise<ExportedHistory> {
  const { store } = context;
  knownWorkflow(context, target.workflow);
  const record = await store.get(target);
  if (record === null) throw instanceNotFound(target);
  const runNumber = wanted ?? record.runNumber;
  const steps: StepRecord[] = [];
  const events: EventRecord[] = [];
  let run: HistoryPage["runs"][number] | undefined;
  for await (const page of pages(context, target, runNumber)) {
    run = page.runs.find((each) => each.runNumber === runNumber);
    for (const item of page.items) {
      if (item.kind === "step") steps.push(item.step);
      else events.push(item.event);
    }
  }
  if (run === undefined) throw invalidRequest(`the instance has no run ${runNumber}`);
  return {
    format: 1,
    workflow: record.workflow,
    id: record.id,
    iid: record.iid,
    runNumber,
    status: run.status,
    params: record.params,
    output: run.output,
    error: run.error,
    createdAt: record.createdAt,
    exportedAt: await store.now(),
    repeatedStepNames,
    steps: steps.toSorted((a, b) => a.ord - b.ord),
    events,
  };
}

async function* pages<Tx>(
  { store, limits }: RecordedEntry<Tx>,
  target: Target,
  runNumber: number,
): AsyncGenerator<HistoryPage> {
  let cursor: string | undefined;
  do {
    const page = await store.history(target, {
      runNumber,
      order: "oldest",
      pageSize: limits.pageSizeMax,
      ...(cursor === undefined ? {} : { cursor }),
    });
    if (page === null) throw instanceNotFound(target);
    yield page;
    cursor = page.hasNextPage ? page.cursor : undefined;
  } while (cursor !== undefined);
}
