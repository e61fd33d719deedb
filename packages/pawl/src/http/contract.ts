import type { PolicyGroup } from "../authoring/policies.js";
import {
  operationEntries,
  type InstanceOperation,
  type InstanceOperations,
} from "../instances/operations.js";
import { instanceAnswer, instanceStatus } from "../instances/wire-forms.js";
import type { WorkflowErrorCode } from "../model/errors.js";
import { defaultLimits, type Limits } from "../model/limits.js";
import { instanceStatusNames } from "../model/status.js";
import {
  anyObject,
  array,
  integer,
  named,
  object,
  oneWordOf,
  string,
  value,
  type WireSchema,
} from "../model/schema.js";
import { historyAnswer, listAnswer, tickAnswer, workflowList } from "./answer-schemas.js";

export type Route = {
  readonly method: InstanceOperation["route"]["method"];
  /** The path under `basePath`; `:name` stands for one segment. */
  readonly path: string;
  readonly group: PolicyGroup;
  readonly summary: string;
  readonly query?: Readonly<Record<string, WireSchema<unknown>>>;
  readonly body?: WireSchema<unknown>;
  /** True if the request takes an `Idempotency-Key`: sent again with the same key, it happens once. */
  readonly keyed?: true;
  /** The schema of a 200. Absent for routes that do not answer in plain JSON. */
  readonly response?: WireSchema<unknown>;
  readonly stream?: true;
  /** The errors of its own, besides those that every route has. */
  readonly errors: readonly WorkflowErrorCode[];
};

/** The errors that any route may answer. */
export const commonErrors = [
  "INVALID_REQUEST",
  "UNAUTHORIZED",
  "FORBIDDEN",
  "STORE_UNAVAILABLE",
  "INTERNAL_ERROR",
] as const satisfies readonly WorkflowErrorCode[];

const identifierPattern = "^[a-zA-Z0-9_][a-zA-Z0-9-_]*$";

const instances = "/workflows/:workflowName/instances";
const instance = `${instances}/:instanceId`;
const ofInstance = ["WORKFLOW_NOT_FOUND", "INVALID_INSTANCE_ID", "INSTANCE_NOT_FOUND"] as const;

/**
 * The routes of the operations on an instance, by their ids. Only their answers are typed; `instances/operations.ts`
 * has the rest.
 */
type InstanceRoutes = {
  readonly [K in keyof InstanceOperations as InstanceOperations[K]["route"]["id"]]: Route & {
    readonly response: InstanceOperations[K]["answer"]["schema"];
  };
};

const instanceRoutes = Object.fromEntries(
  operationEntries.map(([, { route, input, answer, ...operation }]) => [
    route.id,
    {
      method: route.method,
      path: instance + route.path,
      group: operation.group,
      summary: operation.summary,
      ...(input === undefined ? {} : { body: input.schema }),
      ...(operation.once === true ? { keyed: true } : {}),
      response: answer.schema,
      errors: [...ofInstance, ...operation.errors],
    } satisfies Route,
  ]),
) as unknown as InstanceRoutes;

/** The routes that list what there is. */
function listRoutes(limits: Limits) {
  return {
    listWorkflows: {
      method: "GET",
      path: "/workflows",
      group: "read",
      summary: "The registered workflows, and their binding keys.",
      response: workflowList,
      errors: [],
    },
    listInstances: {
      method: "GET",
      path: instances,
      group: "read",
      summary: "A page of instances, by creation. Outputs over 4 KiB are left out.",
      query: {
        status: oneWordOf(instanceStatusNames),
        order: oneWordOf(["newest", "oldest"], { default: "newest" }),
        ...pageWithin(limits),
      },
      response: listAnswer,
      errors: ["WORKFLOW_NOT_FOUND", "INVALID_CURSOR"],
    },
  } as const satisfies Readonly<Record<string, Route>>;
}

/** The routes that create instances. */
function createRoutes(limits: Limits) {
  const instanceId = string({
    pattern: identifierPattern,
    minLength: 1,
    maxLength: limits.instanceIdMaxLength,
  });
  const params = value("What the workflow is given, tagged where JSON cannot hold it.");
  return {
    createInstance: {
      method: "POST",
      path: instances,
      group: "create",
      summary: "Starts an instance. Answers when it is stored.",
      body: named("NewInstance", object({}, { id: instanceId, params })),
      keyed: true,
      response: instanceAnswer,
      errors: [
        "WORKFLOW_NOT_FOUND",
        "INVALID_INSTANCE_ID",
        "INVALID_PARAMS",
        "INSTANCE_ID_ALREADY_EXISTS",
        "PAYLOAD_TOO_LARGE",
        "IDEMPOTENCY_KEY_REUSED",
      ],
    },
    createBatch: {
      method: "POST",
      path: `${instances}/batch`,
      group: "create",
      summary:
        "Starts many instances, all or none. Ids that exist are skipped, and left out of the answer.",
      body: named(
        "NewInstances",
        object({
          instances: array(named("NewInstanceWithId", object({ id: instanceId }, { params })), {
            maxItems: limits.batchMaxInstances,
          }),
        }),
      ),
      keyed: true,
      response: named("Instances", object({ instances: array(instanceAnswer) })),
      errors: ["WORKFLOW_NOT_FOUND", "INVALID_INSTANCE_ID", "INVALID_PARAMS", "PAYLOAD_TOO_LARGE"],
    },
  } as const satisfies Readonly<Record<string, Route>>;
}

/** The route that sends events. */
function eventRoutes(limits: Limits) {
  return {
    sendEvent: {
      method: "POST",
      path: `${instance}/events`,
      group: "sendEvent",
      summary: "Sends an event. It is kept until the run waits for its type.",
      body: named(
        "NewEvent",
        object(
          {
            type: string({
              pattern: identifierPattern,
              minLength: 1,
              maxLength: limits.eventTypeMaxLength,
            }),
          },
          {
            payload: value("What the waiting step is given."),
            id: string({
              minLength: 1,
              maxLength: limits.eventIdMaxLength,
              description: "The same id again changes nothing.",
            }),
          },
        ),
      ),
      response: named("EventAccepted", object({ status: instanceStatus })),
      errors: [
        ...ofInstance,
        "INVALID_EVENT_TYPE",
        "INVALID_EVENT_PAYLOAD",
        "INSTANCE_TERMINAL",
        "PAYLOAD_TOO_LARGE",
      ],
    },
  } as const satisfies Readonly<Record<string, Route>>;
}

/** The routes that tell what happened to an instance, and what is happening to it. */
function historyRoutes(limits: Limits) {
  return {
    getHistory: {
      method: "GET",
      path: `${instance}/history`,
      group: "read",
      summary: "A page of the steps and events of a run, in the order things happened.",
      query: {
        runNumber: integer({ minimum: 1, description: "Default: the current run." }),
        ...pageWithin(limits),
      },
      response: historyAnswer,
      errors: [...ofInstance, "INVALID_CURSOR"],
    },
    streamEvents: {
      method: "GET",
      path: `${instance}/events-stream`,
      group: "read",
      summary: "Status and step changes as server-sent events, until the instance has ended.",
      query: { cursor: string({ description: "As `Last-Event-ID`: the id of the last message." }) },
      stream: true,
      errors: [...ofInstance, "INVALID_CURSOR"],
    },
  } as const satisfies Readonly<Record<string, Route>>;
}

/** The routes that have no workflow in their paths. */
const hostRoutes = {
  tick: {
    method: "POST",
    path: "/_runner/tick",
    group: "tick",
    summary:
      "Runs what is due. Answers when each claimed run has ended, parked or used up the budget.",
    body: named(
      "Tick",
      object({}, { maxInstances: integer({ minimum: 1 }), maxSteps: integer({ minimum: 1 }) }),
    ),
    response: tickAnswer,
    errors: ["TICK_DISABLED", "PAYLOAD_TOO_LARGE"],
  },
  openApi: {
    method: "GET",
    path: "/openapi.json",
    group: "read",
    summary: "This API as an OpenAPI 3.1 document.",
    response: anyObject(),
    errors: [],
  },
} as const satisfies Readonly<Record<string, Route>>;

/** The query of a page. */
function pageWithin(limits: Limits) {
  return {
    pageSize: integer({
      minimum: 1,
      maximum: limits.pageSizeMax,
      default: limits.pageSizeDefault,
    }),
    cursor: string({ description: "Of the page before." }),
  };
}

/** Every route, by the name of its operation, in the order of the documents that are made from it. */
export function contractWithin(limits: Limits) {
  return {
    ...listRoutes(limits),
    ...createRoutes(limits),
    ...instanceRoutes,
    ...eventRoutes(limits),
    ...historyRoutes(limits),
    ...hostRoutes,
  };
}

export const contract = contractWithin(defaultLimits);

export type Contract = typeof contract;
export type Operation = keyof Contract;

/** Returns the methods of a route, as `Allow` lists them. */
export function methodsOf({ method }: Pick<Route, "method">): readonly string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}
