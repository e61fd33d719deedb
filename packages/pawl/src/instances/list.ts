import type { InstanceStatus } from "../authoring/bindings.js";
import { WorkflowError } from "../model/errors.js";
import { requestedOptions, type Known } from "../model/known-options.js";
import { quote } from "../model/quote.js";
import { isInstanceStatusName, type InstanceStatusName } from "../model/status.js";
import type { ListedRecord } from "../store/instance-store.js";
import type { InstancesContext } from "./ports.js";
import { invalidRequest, validCursor, validPageSize } from "./requests.js";
import { instanceStatusOf } from "./status.js";

const listOptions: Known<ListOptions> = { status: true, order: true, pageSize: true, cursor: true };

export type ListOptions = {
  readonly status?: InstanceStatusName | undefined;
  /** The order of creation. "newest" comes first by default. */
  readonly order?: "newest" | "oldest" | undefined;
  readonly pageSize?: number | undefined;
  readonly cursor?: string | undefined;
};

export type ListedInstance = {
  readonly id: string;
  readonly runNumber: number;
  readonly createdAt: Date;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly details: InstanceStatus & {
    /** True if the output has more than 4 KiB and was left out. */
    readonly outputTruncated?: true;
  };
};

export type InstanceList = {
  readonly instances: ListedInstance[];
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

export async function listInstances<Tx>(
  context: InstancesContext<Tx>,
  workflow: string,
  options: ListOptions = {},
): Promise<InstanceList> {
  const { store, limits } = context;
  knownWorkflow(context, workflow);
  const { status, order = "newest" } = requestedOptions("options of list", options, listOptions);
  if (status !== undefined && !isInstanceStatusName(status)) {
    throw invalidRequest(`status must be a status word such as "running", got ${quote(status)}`);
  }
  if (order !== "newest" && order !== "oldest") {
    throw invalidRequest(`order must be "newest" or "oldest", got ${quote(order)}`);
  }
  const { items, ...page } = await store.list({
    workflow,
    order,
    pageSize: validPageSize(options.pageSize, limits),
    ...(status === undefined ? {} : { status }),
    ...validCursor(options.cursor),
  });
  return { instances: items.map((record) => listed(record, context)), ...page };
}

export function knownWorkflow<Tx>(
  { entries }: Pick<InstancesContext<Tx>, "entries">,
  name: string,
): void {
  if (!entries.has(name)) {
    throw new WorkflowError("WORKFLOW_NOT_FOUND", `there is no workflow ${quote(name)}`);
  }
}

function listed<Tx>(record: ListedRecord, { codec }: InstancesContext<Tx>): ListedInstance {
  return {
    id: record.id,
    runNumber: record.runNumber,
    createdAt: new Date(record.createdAt),
    startedAt: dateOrNull(record.startedAt),
    finishedAt: dateOrNull(record.finishedAt),
    details: {
      ...instanceStatusOf(record, codec),
      ...(record.isOutputTooLong ? { outputTruncated: true } : {}),
    },
  };
}

export function dateOrNull(at: number | null): Date | null {
  return at === null ? null : new Date(at);
}
