import { elementOf } from "../authoring/binding-options.js";
import type { InstancesContext, ParentRun } from "../instances/ports.js";
import { WorkflowBinding } from "../instances/workflow.js";
import { WorkflowError } from "../model/errors.js";
import { quote } from "../model/quote.js";
import { workflowIn, untagged, type RouteCall, type RouteOperations } from "./route-call.js";

export type CreateContext<Tx> = {
  readonly instances: InstancesContext<Tx>;
  readonly newId: () => string;
  /** A short text that differs where the given one does. */
  readonly fingerprint: (text: string) => Promise<string>;
};

type RequestedInstance = { readonly id?: unknown; readonly params?: unknown };

const asCreated = { status: "queued" } as const;

/** The routes that create instances. */
export function createOperations<Tx>(
  context: CreateContext<Tx>,
): Pick<RouteOperations, "createInstance" | "createBatch"> {
  return {
    async createInstance(call) {
      const binding = await bindingOf(context, call, [call.body]);
      try {
        const { id } = await binding.create(newInstance(call.body));
        return { id, details: asCreated };
      } catch (error) {
        throw await explained(context, error, call);
      }
    },

    async createBatch(call) {
      const given = call.body["instances"];
      const items: readonly RequestedInstance[] = Array.isArray(given) ? given : [];
      const binding = await bindingOf(context, call, firstOfEachId(items));
      const batch = Array.isArray(given)
        ? items.map((item, i) => newInstance(item, `${elementOf(i)}.params`))
        : given;
      const created = await binding.createBatch(batch as { id: string }[]);
      return { instances: created.map(({ id }) => ({ id, details: asCreated })) };
    },
  };
}

/** The binding of a call. A keyed request is the same each time it is sent, as a step is in each of its attempts. */
async function bindingOf<Tx>(
  { instances, newId, fingerprint }: CreateContext<Tx>,
  call: RouteCall,
  items: readonly unknown[],
): Promise<WorkflowBinding<Tx>> {
  const entry = workflowIn(instances, call);
  const { key } = call;
  if (key === undefined) {
    return new WorkflowBinding({ context: instances, entry, parent: undefined, newId });
  }
  // The request is a part of where the instance comes from, so that another request does not take it for its own.
  const prints = await Promise.all(items.map((item) => fingerprint(JSON.stringify(item))));
  let next = 0;
  const caller: ParentRun = {
    barrier: () => Promise.resolve(),
    nextOrigin: () => ({ origin: `${keyed(key)}${prints[next++]}`, id: `k${key}` }),
  };
  return new WorkflowBinding({ context: instances, entry, parent: caller, newId });
}

/** Tells why the id of a keyed request is taken: by itself with another body, or by another request. */
async function explained<Tx>(
  { instances }: CreateContext<Tx>,
  error: unknown,
  call: RouteCall,
): Promise<unknown> {
  const { key, body } = call;
  const isTaken = error instanceof WorkflowError && error.code === "INSTANCE_ID_ALREADY_EXISTS";
  if (!isTaken || key === undefined) return error;
  const id = body["id"] === undefined ? `k${key}` : (body["id"] as string);
  const taken = await instances.store.get({ workflow: workflowIn(instances, call).name, id });
  if (taken?.origin?.startsWith(keyed(key)) !== true) return error;
  return new WorkflowError(
    "IDEMPOTENCY_KEY_REUSED",
    `Idempotency-Key ${quote(key)} was used before, with another body`,
  );
}

/** How the origin of everything that a keyed request creates begins. */
function keyed(key: string): string {
  return `http:${key}:`;
}

/** Of several instances with one id, only the first counts. */
function firstOfEachId(items: readonly RequestedInstance[]): RequestedInstance[] {
  const byId = new Map<unknown, RequestedInstance>();
  for (const item of items) if (!byId.has(item.id)) byId.set(item.id, item);
  return [...byId.values()];
}

function newInstance({ id, params }: RequestedInstance, what = "params") {
  return {
    id: id as string,
    ...(params === undefined ? {} : { params: untagged(params, what, "INVALID_PARAMS") }),
  };
}
