import type { Codec } from "../model/codec.js";
import { decodeError, encodeError } from "../model/error-codec.js";
import { RunnerDiedError, StepMaxAttemptsExceeded, WaitTimeoutError } from "../model/errors.js";
import type { Limits } from "../model/limits.js";
import { quote } from "../model/quote.js";
import type { EventRecord } from "../store/records.js";
import type { Delivered, Settlement, Step } from "./step.js";

/** A settlement before it has its number. */
export type Unnumbered = Omit<Settlement, "seq">;

const slept: Unnumbered = { ok: true, text: "null" };

export function sleptOrRefused({ refusal }: Step): Unnumbered {
  return refusal === null ? slept : { ok: false, text: refusal };
}

export function failed(error: unknown): Unnumbered {
  return { ok: false, text: encodeError(error) };
}

type Envelope = { readonly codec: Codec; readonly limits: Limits };

/** An event as the code that waited for it sees it. */
export function received(event: EventRecord, { codec, limits }: Envelope): Unnumbered {
  const ENVELOPE_BYTES = 1_024;
  try {
    const payload = event.payload === null ? undefined : codec.decode(event.payload);
    const value = { type: event.type, payload, timestamp: new Date(event.createdAt) };
    const maxBytes = limits.eventPayloadMaxBytes + ENVELOPE_BYTES;
    return { ok: true, text: codec.encode(value, { what: `event ${event.type}`, maxBytes }) };
  } catch (error) {
    return failed(error);
  }
}

export function timedOut({ name, eventType }: Step): Unnumbered {
  return failed(
    new WaitTimeoutError(
      `no event of type ${quote(eventType)} came for step ${quote(name)} in time`,
    ),
  );
}

export function noAttemptsLeft({ name, attempts, lastError }: Step): Unnumbered {
  // Only of a single attempt nothing is recorded: what it began with is all that there is of it.
  const cause =
    lastError === null ? runnerDied({ name, attempt: attempts }) : decodeError(lastError);
  return failed(
    new StepMaxAttemptsExceeded(
      `step ${quote(name)} was begun ${attempts} times and has no attempt left`,
      { cause },
    ),
  );
}

export function runnerDied(of: { readonly name: string; readonly attempt: number }): Error {
  return new RunnerDiedError(
    `the runner of attempt ${of.attempt} of step ${quote(of.name)} died before the attempt ended`,
  );
}

/** What the code gets: decoded anew each time, so that no two calls share a value. */
export function decoded(step: Step, { ok, text }: Settlement, codec: Codec): Delivered {
  try {
    if (!ok) return { error: decodeError(text) };
    if (step.type === "sleep") return { value: undefined };
    const value = codec.decode(text);
    if (step.type === "do") return { value };
    // A codec that knows only JSON has made a string of it.
    const event = value as { timestamp: Date | string };
    return { value: { ...event, timestamp: new Date(event.timestamp) } };
  } catch (error) {
    return { error };
  }
}
