import type { WaitForEventOptions } from "../../authoring/step.js";
import { parseDurationMs } from "../../model/duration.js";
import { encodeError } from "../../model/error-codec.js";
import { ValidationError, WaitTimeoutError } from "../../model/errors.js";
import type { Limits } from "../../model/limits.js";
import { validEventType } from "../../model/names.js";
import { quote } from "../../model/quote.js";
import type { EventRecord } from "../../store/records.js";
import type { EngineContext } from "../context.js";
import type { Settled } from "../step.js";
import type { StepKind, StepMethod } from "./kind.js";

type EventWait = { readonly type: string; readonly timeoutMs: number };

/** `step.waitForEvent`: a wait for an event of one type, or for its timeout. */
export const waitForEventKind = {
  type: "waitForEvent",
  body: null,
  takesEvents: true,
  mayEndUnregistered: false,
  keepsResult: true,

  begin(step, open, { type, timeoutMs }, _heardAt, { overrides }) {
    open.waitKey = type;
    open.wake = { inMs: timeoutMs };
    if (overrides?.timesOut(step.name) === true) open.endsAs = timedOut(step.name, type);
  },

  woken({ name }, { waitKey }, event, context) {
    return event === null ? timedOut(name, waitKey) : received(event, context);
  },

  decode(text, codec) {
    const event = codec.decode(text) as { timestamp: Date | string };
    // A codec that knows only JSON has turned the time into a string.
    return { ...event, timestamp: new Date(event.timestamp) };
  },
} satisfies StepKind<EventWait>;

export const waitForEventMethod: StepMethod<EventWait> = {
  kind: waitForEventKind,
  read(name, options, _, { limits }) {
    if (typeof options !== "object" || options === null) {
      throw new ValidationError(`step ${quote(name)} needs { type }, got ${quote(options)}`);
    }
    const { type, timeout = limits.eventTimeoutDefaultMs } = options as WaitForEventOptions;
    checkEventType(name, type, limits);
    const timeoutMs = parseDurationMs(timeout, {
      field: `timeout of step ${quote(name)}`,
      minMs: limits.eventTimeoutMinMs,
      maxMs: limits.eventTimeoutMaxMs,
    });
    return { type, timeoutMs };
  },
};

function checkEventType(name: string, type: unknown, limits: Limits): void {
  try {
    validEventType(type, limits);
  } catch (error) {
    throw new ValidationError(`step ${quote(name)}: ${(error as Error).message}`);
  }
}

/** Room for the type and the time around an event's payload. */
const ENVELOPE_BYTES = 1_024;

/** Returns the event as the code that waited for it sees it. */
function received(event: EventRecord, { codec, limits }: EngineContext): Settled {
  try {
    const payload = event.payload === null ? undefined : codec.decode(event.payload);
    const value = { type: event.type, payload, timestamp: new Date(event.createdAt) };
    const maxBytes = limits.eventPayloadMaxBytes + ENVELOPE_BYTES;
    return { ok: true, text: codec.encode(value, { what: `event ${event.type}`, maxBytes }) };
  } catch (error) {
    return { ok: false, text: encodeError(error) };
  }
}

function timedOut(name: string, type: string | null): Settled {
  const message = `no event of type ${quote(type)} came for step ${quote(name)} in time`;
  return { ok: false, text: encodeError(new WaitTimeoutError(message)) };
}
