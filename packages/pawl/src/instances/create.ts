import type { CreateOptions } from "../authoring/bindings.js";
import type { WorkflowEntry } from "../authoring/entry.js";
import { validInstanceId } from "../model/names.js";
import type { CreateAnswer, NewInstance } from "../store/store.js";
import type { InstanceScope } from "./instance.js";
import type { ChildOrigin, InstancesContext } from "./ports.js";
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
 * Names an instance at the moment of the call: children without an id are numbered in the order in which the code
 * asked for them, whatever it awaits afterwards.
 */
export function name<Tx>(
  options: CreateOptions,
  { context, entry, parent, newId }: InstanceScope<Tx>,
): Wanted {
  const { limits, store } = context;
  const given = options.id === undefined ? undefined : validInstanceId(options.id, limits);
  const child: ChildOrigin | undefined = parent?.nextOrigin(
    given === undefined ? null : `${entry.name}/${given}`,
  );
  return {
    id: given ?? child?.id ?? fittingId(newId, (id) => store.fits?.({ workflow: entry.name, id })),
    ...(child === undefined ? {} : { origin: child.origin }),
    params: options.params,
  };
}

function fittingId(newId: () => string, fits: (id: string) => boolean | undefined): string {
  for (;;) {
    // Internal ids may begin with "-", which ids of instances may not.
    const id = `i${newId()}`;
    if (fits(id) !== false) return id;
  }
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
  return answers.map((answer, i) => isOurs(answer, rows[i]?.origin));
}

function isOurs(answer: CreateAnswer, origin: string | undefined): boolean {
  if (answer.kind === "created") return true;
  return origin !== undefined && answer.existing?.origin === origin;
}
