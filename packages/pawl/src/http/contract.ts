import { workflowErrorStatus, type WorkflowErrorCode } from "../model/errors.js";
import { defaultLimits, type Limits } from "../model/limits.js";
import { instanceStatusNames } from "../model/status.js";
import {
  anyObject,
  array,
  boolean,
  either,
  integer,
  literal,
  named,
  nullable,
  number,
  object,
  oneWordOf,
  string,
  stringOrNumber,
  value,
  type WireSchema,
} from "./schema.js";

/** Which policy of `authorize` guards a route, after `all`. */
export type PolicyGroup = "create" | "manage" | "sendEvent" | "read" | "tick";

export type Route = {
  readonly method: "GET" | "POST";
  /** Under `basePath`; `:name` stands for one segment. */
  readonly path: string;
  readonly group: PolicyGroup;
  readonly summary: string;
  readonly query?: Readonly<Record<string, WireSchema<unknown>>>;
  readonly body?: WireSchema<unknown>;
  /** May be sent again with the same `Idempotency-Key`: it happens once. */
  readonly keyed?: true;
  /** Of a 200; absent for those that do not answer in plain JSON. */
  readonly response?: WireSchema<unknown>;
  readonly stream?: true;
  /** Besides those that every route has. */
  readonly errors: readonly WorkflowErrorCode[];
};

/** What any route may answer. */
export const commonErrors = [
  "INVALID_REQUEST",
  "UNAUTHORIZED",
  "FORBIDDEN",
  "STORE_UNAVAILABLE",
  "INTERNAL_ERROR",
] as const satisfies readonly WorkflowErrorCode[];

const identifierPattern = "^[a-zA-Z0-9_][a-zA-Z0-9-_]*$";

const time = string({ format: "date-time" });
const errorDescription = named(
  "ErrorDescription",
  object({ name: string(), message: string() }, { code: stringOrNumber() }),
);

const statusFields = {
  error: errorDescription,
  output: value("What the workflow returned, tagged where JSON cannot hold it."),
};
const statusWord = oneWordOf(instanceStatusNames);

export const instanceStatus = named("InstanceStatus", object({ status: statusWord }, statusFields));

const listedStatus = named(
  "ListedStatus",
  object({ status: statusWord }, { ...statusFields, outputTruncated: literal(true) }),
);

export const instanceAnswer = named("Instance", object({ id: string(), details: instanceStatus }));

export const listAnswer = named(
  "InstanceList",
  object(
    {
      instances: array(
        named(
          "ListedInstance",
          object({
            id: string(),
            runNumber: integer(),
            createdAt: time,
            startedAt: nullable(time),
            finishedAt: nullable(time),
            details: listedStatus,
          }),
        ),
      ),
      hasNextPage: boolean(),
    },
    { cursor: string() },
  ),
);

const wait = named(
  "Wait",
  object(
    { reason: string({ description: "retry, sleep or event" }), until: nullable(time) },
    { eventType: string() },
  ),
);

const attempt = named(
  "Attempt",
  object(
    { n: integer({ minimum: 1 }), startedAt: time, endedAt: nullable(time) },
    { error: errorDescription },
  ),
);

const stepFields = {
  ord: integer({ minimum: 1, description: "The order in which the code called its steps." }),
  name: string(),
  count: integer({ minimum: 1 }),
  type: string({ description: "do, sleep or waitForEvent" }),
  status: oneWordOf(["running", "waiting", "completed", "errored"]),
  startedAt: time,
  endedAt: nullable(time),
};

const historyStep = named(
  "HistoryStep",
  object(
    { kind: literal("step"), ...stepFields, attempts: array(attempt) },
    { result: value("What the step gave."), error: errorDescription, wait },
  ),
);

const historyEvent = named(
  "HistoryEvent",
  object(
    {
      kind: literal("event"),
      type: string(),
      createdAt: time,
      deliveredAt: nullable(time),
      consumedByStep: nullable(integer({ description: "`ord` of the step that took it." })),
    },
    { payload: value("What was sent.") },
  ),
);

export const historyAnswer = named(
  "History",
  object(
    {
      runNumber: integer({ minimum: 1 }),
      runs: array(
        named(
          "HistoryRun",
          object(
            {
              runNumber: integer({ minimum: 1 }),
              status: statusWord,
              startedAt: nullable(time),
              finishedAt: nullable(time),
            },
            statusFields,
          ),
        ),
      ),
      entries: array(either(historyStep, historyEvent)),
      hasNextPage: boolean(),
    },
    { cursor: string() },
  ),
);

/** The data of a `status` message of the stream. */
export const streamedStatus = named(
  "StreamedStatus",
  object(
    { runNumber: integer({ minimum: 1 }), status: statusWord },
    {
      ...statusFields,
      thrown: value("What the workflow threw, with its class and cause, tagged."),
    },
  ),
);

/** The data of a `step` message of the stream: a step without its result. */
export const streamedStep = named(
  "StreamedStep",
  object(
    {
      runNumber: integer({ minimum: 1 }),
      ...stepFields,
      attempt: integer({
        minimum: 0,
        description: "The one that runs, or the last that ended; 0 where there is none.",
      }),
    },
    { error: errorDescription, wait },
  ),
);

export const errorBody = named(
  "Error",
  object({
    code: oneWordOf(Object.keys(workflowErrorStatus) as WorkflowErrorCode[]),
    message: string(),
  }),
);

const ok = named("Ok", object({ ok: literal(true) }));
const workflowList = named(
  "WorkflowList",
  object({ workflows: array(object({ name: string(), binding: string() })) }),
);
const tickAnswer = named(
  "TickResult",
  object({
    processed: integer({ minimum: 0 }),
    nextWakeInMs: nullable(number()),
  }),
);

const instances = "/workflows/:workflowName/instances";
const instance = `${instances}/:instanceId`;
const ofInstance = ["WORKFLOW_NOT_FOUND", "INVALID_INSTANCE_ID", "INSTANCE_NOT_FOUND"] as const;

/** Every route, by the name of its operation. */
export function contractWithin(limits: Limits) {
  const instanceId = string({
    pattern: identifierPattern,
    minLength: 1,
    maxLength: limits.instanceIdMaxLength,
  });
  const params = value("What the workflow is given, tagged where JSON cannot hold it.");
  const page = {
    pageSize: integer({
      minimum: 1,
      maximum: limits.pageSizeMax,
      default: limits.pageSizeDefault,
    }),
    cursor: string({ description: "Of the page before." }),
  };
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
        ...page,
      },
      response: listAnswer,
      errors: ["WORKFLOW_NOT_FOUND", "INVALID_CURSOR"],
    },
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
    getInstance: {
      method: "GET",
      path: instance,
      group: "read",
      summary: "The status of an instance; its output or error once it has ended.",
      response: instanceAnswer,
      errors: ofInstance,
    },
    pauseInstance: control("pause", "Pauses at once, or at the next step boundary if it runs.", [
      "INSTANCE_TERMINAL",
    ]),
    resumeInstance: control("resume", "Resumes a paused instance; otherwise nothing happens.", []),
    terminateInstance: control("terminate", "Ends the instance.", ["INSTANCE_TERMINAL"]),
    restartInstance: control("restart", "Starts a new run; earlier ones stay readable.", []),
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
    getHistory: {
      method: "GET",
      path: `${instance}/history`,
      group: "read",
      summary: "A page of the steps and events of a run, in the order things happened.",
      query: {
        runNumber: integer({ minimum: 1, description: "Default: the current run." }),
        ...page,
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
}

function control<const E extends readonly WorkflowErrorCode[]>(
  verb: "pause" | "resume" | "terminate" | "restart",
  summary: string,
  errors: E,
) {
  return {
    method: "POST",
    path: `${instance}/${verb}`,
    group: "manage",
    summary,
    // Pausing or resuming twice is as good as once.
    ...(verb === "terminate" || verb === "restart" ? { keyed: true as const } : {}),
    response: ok,
    errors: [...ofInstance, ...errors],
  } as const;
}

export const contract = contractWithin(defaultLimits);

export type Contract = typeof contract;
export type Operation = keyof Contract;

/** The methods of a route in `Allow`. */
export function methodsOf({ method }: Pick<Route, "method">): readonly string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}
