import type { CreateOptions } from "../authoring/bindings.js";
import type { WorkflowEntry } from "../authoring/entry.js";
import { validInstanceId } from "../model/names.js";
import type { CreateAnswer, NewInstance } from "../store/store.js";
import type { ChildOrigin, InstancesContext, ParentRun, StartedInstance } from "./ports.js";
import { encodeParams } from "./values.js";

/** One instance that somebody asked for, named but not yet checked. */
export type Wanted = {
  readonly id: string;
  readonly origin?: string;
  readonly params: unknown;
  /** How errors name its params. */
  readonly what?: string;
};

/**
 * Names an instance at the moment of the call: children are numbered in the order in which the code asked for
 * them, whatever it awaits afterwards.
 */
export function name(
  options: CreateOptions,
  { limits }: Pick<InstancesContext<never>, "limits">,
  parent: ParentRun | undefined,
  newId: () => string,
): Wanted {
  const given = options.id === undefined ? undefined : validInstanceId(options.id, limits);
  const child: ChildOrigin | undefined = parent?.nextOrigin();
  return {
    id: given ?? child?.id ?? fittingId(newId),
    ...(child === undefined ? {} : { origin: child.origin }),
    params: options.params,
  };
}

/** Internal ids may begin with "-", which ids of instances may not. */
function fittingId(newId: () => string): string {
  return `i${newId()}`;
}

/** True for each instance that is now there because of this call, or an earlier attempt of the same step. */
export async function insert<Tx>(
  context: InstancesContext<Tx>,
  entry: WorkflowEntry,
  wanted: readonly Wanted[],
  newId: () => string,
  tx: Tx | undefined,
): Promise<boolean[]> {
  const rows: NewInstance[] = [];
  for (const { id, origin, params, what } of wanted) {
    rows.push({
      iid: newId(),
      workflow: entry.name,
      id,
      queue: entry.queue,
      params: await encodeParams(context, entry, params, what),
      ...(origin === undefined ? {} : { origin }),
    });
  }
  const answers =
    tx === undefined
      ? await insertEagerly(context, rows)
      : // Nobody may wait for another connection while a transaction is open.
        await context.store.create(rows, { tx, hooked: context.hooks.has("onWorkflowEnqueued") });
  return answers.map((answer, i) => isOurs(answer, rows[i]?.origin));
}

function isOurs(answer: CreateAnswer, origin: string | undefined): boolean {
  if (answer.kind === "created") return true;
  return origin !== undefined && answer.existing?.origin === origin;
}

/** Leases the new runs to a runner of this process if it has room: then they need no claim. */
async function insertEagerly<Tx>(
  { store, hints, hooks }: InstancesContext<Tx>,
  rows: readonly NewInstance[],
): Promise<CreateAnswer[]> {
  await hooks.registered();
  const room = hints.reserve(rows.length);
  let started: StartedInstance[] = [];
  try {
    const answers = await store.create(rows, room ? { lease: { runner: room.runner } } : {});
    started = rows.flatMap((row, i) => startedFrom(row, answers[i]));
    const created = answers.filter(({ kind }) => kind === "created");
    if (created.length > started.length) hints.wake();
    if (created.length > 0) hooks.posted("onWorkflowEnqueued");
    return answers;
  } finally {
    if (started.length > 0) room?.started(started);
    if (started.length < rows.length) room?.release(rows.length - started.length);
  }
}

function startedFrom(
  { iid, workflow, id, params }: NewInstance,
  answer: CreateAnswer | undefined,
): StartedInstance[] {
  if (answer?.kind !== "created" || !answer.leased) return [];
  return [{ iid, workflow, id, params, createdAt: answer.createdAt }];
}
