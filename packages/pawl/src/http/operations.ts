import { elementOf } from "../authoring/binding-options.js";
import type { WorkflowEntry } from "../authoring/entry.js";
import { history } from "../instances/history.js";
import { Instance } from "../instances/instance.js";
import { knownWorkflow, listInstances, type ListOptions } from "../instances/list.js";
import {
  operationEntries,
  type InstanceOperations,
  type OperationName,
} from "../instances/operations.js";
import { performNamed } from "../instances/perform.js";
import type { InstancesContext, ParentRun } from "../instances/ports.js";
import { wireStatus } from "../instances/wire-forms.js";
import { WorkflowBinding } from "../instances/workflow.js";
import { invalidRequest, validBounds } from "../instances/requests.js";
import type { Signal } from "../model/abort.js";
import { fromTagged } from "../model/codec.js";
import { SerializationError, WorkflowError, type WorkflowErrorCode } from "../model/errors.js";
import { validInstanceId } from "../model/names.js";
import { quote } from "../model/quote.js";
import type { TickOptions, TickResult } from "../runner/options.js";
import type { Contract, Operation } from "./contract.js";
import { eventStream } from "./event-stream.js";
import { queryNumber, queryValue } from "./input.js";
import type { TypeOf } from "../model/schema.js";
import type { Watchers } from "./watchers.js";
import type { WebHeaders, WebResponse, WebUrl } from "../model/web.js";
import { wireHistory, wireList } from "./wire.js";

export type OperationsContext<Tx> = {
  readonly instances: InstancesContext<Tx>;
  readonly newId: () => string;
  readonly watchers: Watchers;
  /** Null while the route is switched off. */
  readonly tick: ((options: TickOptions) => Promise<TickResult>) | null;
  readonly openApi: () => object;
  /** A short text that differs where the given one does. */
  readonly fingerprint: (text: string) => Promise<string>;
};

/** A request that may pass. */
export type RouteCall = {
  readonly params: Readonly<Record<string, string>>;
  readonly url: WebUrl;
  readonly headers: WebHeaders;
  /** Has no keys besides those of the contract; the rest is unchecked. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly key: string | undefined;
  /** Asked for only when needed: some servers make it on demand. */
  readonly signal: () => Signal | undefined;
};

type AnswerOf<O extends Operation> = Contract[O] extends { readonly response: infer S }
  ? TypeOf<S>
  : WebResponse;

type Operations = {
  readonly [O in Operation]: (call: RouteCall) => AnswerOf<O> | Promise<AnswerOf<O>>;
};

/** The routes that are made from the table of operations on an instance. */
type InstanceRouteId = InstanceOperations[OperationName]["route"]["id"];

/** What each operation of the contract does. */
export function operationsOf<Tx>(context: OperationsContext<Tx>): Operations {
  const { instances, newId, watchers, openApi, fingerprint } = context;
  const { entries, limits } = instances;

  function entryOf({ params }: RouteCall): WorkflowEntry {
    const name = params["workflowName"];
    if (name === undefined) throw invalidRequest("the path is not percent-encoded as it should be");
    knownWorkflow(instances, name);
    return entries.get(name) as WorkflowEntry;
  }

  function targetOf(call: RouteCall) {
    const entry = entryOf(call);
    const id = validInstanceId(call.params["instanceId"] ?? "%", limits);
    return { entry, target: { workflow: entry.name, id } };
  }

  /** An operation with a known id happens once; keys of different operations are different ids. */
  function operationId(name: OperationName, { key }: RouteCall): string {
    return key === undefined ? newId() : `http:${name}:${key}`;
  }

  /** As a step is the same in each of its attempts, so is a keyed request each time it is sent. */
  async function bindingOf(call: RouteCall, items: readonly unknown[]) {
    const entry = entryOf(call);
    const { key } = call;
    if (key === undefined) {
      return new WorkflowBinding({ context: instances, entry, parent: undefined, newId });
    }
    // What was asked for is a part of where the instance comes from: another request does not take it for its own.
    const prints = await Promise.all(items.map((item) => fingerprint(JSON.stringify(item))));
    let next = 0;
    const caller: ParentRun = {
      barrier: () => Promise.resolve(),
      nextOrigin: () => ({ origin: `${keyed(key)}${prints[next++]}`, id: `k${key}` }),
    };
    return new WorkflowBinding({ context: instances, entry, parent: caller, newId });
  }

  /** The id that a keyed request wants is taken: by itself with another body, or by somebody else. */
  async function explained(
    error: unknown,
    { key, body }: RouteCall,
    workflow: string,
  ): Promise<unknown> {
    const isTaken = error instanceof WorkflowError && error.code === "INSTANCE_ID_ALREADY_EXISTS";
    if (!isTaken || key === undefined) return error;
    const id = body["id"] === undefined ? `k${key}` : (body["id"] as string);
    const taken = await instances.store.get({ workflow, id });
    if (taken?.origin?.startsWith(keyed(key)) !== true) return error;
    return new WorkflowError(
      "IDEMPOTENCY_KEY_REUSED",
      `Idempotency-Key ${quote(key)} was used before, with another body`,
    );
  }

  const ofInstances = Object.fromEntries(
    operationEntries.map(([name, { route, input, answer }]) => [
      route.id,
      async (call: RouteCall) => {
        const { target } = targetOf(call);
        const given = input?.fromWire(call.body);
        const newOperationId = () => operationId(name, call);
        const done = await performNamed(
          name,
          { context: instances, target, newOperationId },
          given,
        );
        return answer.toWire(done, target.id);
      },
    ]),
  ) as unknown as Pick<Operations, InstanceRouteId>;

  return {
    listWorkflows: () => ({
      workflows: Array.from(entries.values(), ({ name, binding }) => ({ name, binding })),
    }),

    async listInstances(call) {
      const { name } = entryOf(call);
      const options = {
        status: queryValue(call.url, "status"),
        order: queryValue(call.url, "order"),
        pageSize: queryNumber(call.url, "pageSize"),
        cursor: queryValue(call.url, "cursor"),
      };
      return wireList(await listInstances(instances, name, options as ListOptions));
    },

    async createInstance(call) {
      const binding = await bindingOf(call, [call.body]);
      try {
        const { id } = await binding.create(newInstance(call.body));
        return { id, details: asCreated };
      } catch (error) {
        throw await explained(error, call, entryOf(call).name);
      }
    },

    async createBatch(call) {
      const given = call.body["instances"];
      const items: readonly RequestedInstance[] = Array.isArray(given) ? given : [];
      const binding = await bindingOf(call, firstOfEachId(items));
      const batch = Array.isArray(given)
        ? items.map((item, i) => newInstance(item, `${elementOf(i)}.params`))
        : given;
      const created = await binding.createBatch(batch as { id: string }[]);
      return { instances: created.map(({ id }) => ({ id, details: asCreated })) };
    },

    ...ofInstances,

    async sendEvent(call) {
      const { entry, target } = targetOf(call);
      const scope = { context: instances, entry, parent: undefined, newId };
      const instance = new Instance(scope, target.id);
      const { type, id, payload } = call.body;
      await instance.sendEvent({
        type: type as string,
        ...(id === undefined ? {} : { id: id as string }),
        payload: untagged(payload, "payload", "INVALID_EVENT_PAYLOAD"),
      });
      return { status: wireStatus(await instance.status()) };
    },

    async getHistory(call) {
      const { target } = targetOf(call);
      const options = {
        runNumber: queryNumber(call.url, "runNumber"),
        pageSize: queryNumber(call.url, "pageSize"),
        cursor: queryValue(call.url, "cursor"),
      };
      return wireHistory(await history(instances, target.workflow, target.id, options));
    },

    async streamEvents(call) {
      const { target } = targetOf(call);
      const cursor = call.headers.get("last-event-id") ?? queryValue(call.url, "cursor");
      const watch = await watchers.watch(target, cursor);
      return eventStream(watch, instances.runtime.scheduler, call.signal());
    },

    async tick({ body }) {
      if (context.tick === null) {
        throw new WorkflowError("TICK_DISABLED", "ticks over HTTP are switched off (tick.enabled)");
      }
      return context.tick(validBounds(body));
    },

    openApi,
  };
}

const asCreated = { status: "queued" } as const;

/** The origin of whatever a keyed request creates begins so. */
function keyed(key: string): string {
  return `http:${key}:`;
}

type RequestedInstance = { readonly id?: unknown; readonly params?: unknown };

/** Of several with one id, only the first counts. */
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

function untagged(json: unknown, what: string, code: WorkflowErrorCode): unknown {
  try {
    return fromTagged(json);
  } catch (error) {
    if (!(error instanceof SerializationError)) throw error;
    throw new WorkflowError(code, `${what}: ${error.message}`, { cause: error });
  }
}
