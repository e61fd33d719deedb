import { stepTypes } from "../model/step-types.js";
import { errorDescription, outcomeFields, anyStatus } from "../instances/wire-forms.js";
import { workflowErrorStatus, type WorkflowErrorCode } from "../model/errors.js";
import {
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
  value,
} from "../model/schema.js";

const time = string({ format: "date-time" });
const listedStatus = named(
  "ListedStatus",
  object({ status: anyStatus }, { ...outcomeFields, outputTruncated: literal(true) }),
);

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

/** "do, sleep or waitForEvent". */
const stepTypeWords = Object.keys(stepTypes)
  .join(", ")
  .replace(/, (?=[^,]*$)/, " or ");

const stepFields = {
  ord: integer({ minimum: 1, description: "The order in which the code called its steps." }),
  name: string(),
  count: integer({ minimum: 1 }),
  type: string({ description: stepTypeWords }),
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
              status: anyStatus,
              startedAt: nullable(time),
              finishedAt: nullable(time),
            },
            outcomeFields,
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
    { runNumber: integer({ minimum: 1 }), status: anyStatus },
    {
      ...outcomeFields,
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

export const workflowList = named(
  "WorkflowList",
  object({ workflows: array(object({ name: string(), binding: string() })) }),
);
export const tickAnswer = named(
  "TickResult",
  object({
    processed: integer({ minimum: 0 }),
    nextWakeInMs: nullable(number()),
  }),
);
