import { history } from "../instances/history.js";
import { Instance } from "../instances/instance.js";
import { listInstances, type ListOptions } from "../instances/list.js";
import { operationEntries, type InstanceOperations } from "../instances/operations.js";
import { performNamed } from "../instances/perform.js";
import { validBounds } from "../instances/requests.js";
import { wireStatus } from "../instances/wire-forms.js";
import { WorkflowError } from "../model/errors.js";
import type { WebUrl } from "../model/web.js";
import type { TickOptions, TickResult } from "../runner/options.js";
import { createOperations, type CreateContext } from "./create-operations.js";
import { eventStream } from "./event-stream.js";
import { queryNumber, queryValue } from "./input.js";
import {
  workflowIn,
  instanceIn,
  untagged,
  type RouteCall,
  type RouteOperations,
} from "./route-call.js";
import type { Watchers } from "./watchers.js";
import { wireHistory, wireList } from "./wire.js";

type OperationsContext<Tx> = CreateContext<Tx> & {
  readonly watchers: Watchers;
  /** Null while the route is switched off. */
  readonly tick: ((options: TickOptions) => Promise<TickResult>) | null;
  readonly openApi: () => object;
};

/** The behaviour of each route of the contract. */
export function operationsOf<Tx>(context: OperationsContext<Tx>): RouteOperations {
  return {
    ...createOperations(context),
    ...instanceRoutesOf(context),
    ...readOperations(context),
    sendEvent: (call) => sendEvent(context, call),
    async tick({ body }) {
      if (context.tick === null) {
        throw new WorkflowError("TICK_DISABLED", "ticks over HTTP are switched off (tick.enabled)");
      }
      return context.tick(validBounds(body));
    },
    openApi: context.openApi,
  };
}

/** The routes that are made from the table of operations on an instance. */
type InstanceRouteId = InstanceOperations[keyof InstanceOperations]["route"]["id"];

function instanceRoutesOf<Tx>({
  instances,
  newId,
}: OperationsContext<Tx>): Pick<RouteOperations, InstanceRouteId> {
  const routes = operationEntries.map(([name, { route, input, answer }]) => {
    const answerTo = async (call: RouteCall): Promise<object> => {
      const { target } = instanceIn(instances, call);
      const { key } = call;
      const done = await performNamed(
        name,
        {
          context: instances,
          target,
          // An operation with a known id is carried out once. The same key for another operation is another id.
          newOperationId: () => (key === undefined ? newId() : `http:${name}:${key}`),
        },
        input?.fromWire(call.body),
      );
      return answer.toWire(done, target.id);
    };
    return [route.id, answerTo] as const;
  });
  return Object.fromEntries(routes) as unknown as Pick<RouteOperations, InstanceRouteId>;
}

/** The routes that read more than one instance, or more of it than its status. */
function readOperations<Tx>({
  instances,
  watchers,
}: OperationsContext<Tx>): Pick<
  RouteOperations,
  "listWorkflows" | "listInstances" | "getHistory" | "streamEvents"
> {
  return {
    listWorkflows: () => ({
      workflows: Array.from(instances.entries.values(), ({ name, binding }) => ({ name, binding })),
    }),

    async listInstances(call) {
      const { name } = workflowIn(instances, call);
      const options = {
        status: queryValue(call.url, "status"),
        order: queryValue(call.url, "order"),
        ...pageOf(call.url),
      };
      return wireList(await listInstances(instances, name, options as ListOptions));
    },

    async getHistory(call) {
      const { target } = instanceIn(instances, call);
      const options = { runNumber: queryNumber(call.url, "runNumber"), ...pageOf(call.url) };
      return wireHistory(await history(instances, target.workflow, target.id, options));
    },

    async streamEvents(call) {
      const { target } = instanceIn(instances, call);
      const cursor = call.headers.get("last-event-id") ?? queryValue(call.url, "cursor");
      const watch = await watchers.watch(target, cursor);
      return eventStream(watch, instances.runtime.scheduler, call.signal());
    },
  };
}

function pageOf(url: WebUrl) {
  return { pageSize: queryNumber(url, "pageSize"), cursor: queryValue(url, "cursor") };
}

async function sendEvent<Tx>({ instances, newId }: OperationsContext<Tx>, call: RouteCall) {
  const { entry, target } = instanceIn(instances, call);
  const scope = { context: instances, entry, parent: undefined, newId };
  const instance = new Instance(scope, target.id);
  const { type, id, payload } = call.body;
  await instance.sendEvent({
    type: type as string,
    ...(id === undefined ? {} : { id: id as string }),
    payload: untagged(payload, "payload", "INVALID_EVENT_PAYLOAD"),
  });
  return { status: wireStatus(await instance.status()) };
}
