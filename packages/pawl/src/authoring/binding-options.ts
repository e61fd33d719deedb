import { requestedOptions, type Known } from "../model/known-options.js";
import {
  PayloadTooLargeError,
  SerializationError,
  WorkflowError,
  type WorkflowErrorCode,
} from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { CreateOptions, ResultOptions, SentEvent, TxOptions } from "./bindings.js";

// Checks of what bindings are given, in process and over HTTP: objects that have no keys besides the known ones.

const newInstance: Known<CreateOptions> = { id: true, params: true };
const event: Known<SentEvent> = { type: true, payload: true, id: true };
const wait: Known<ResultOptions> = { timeout: true, signal: true };
const within: Known<TxOptions<unknown>> = { tx: true };

export function validNew<T extends CreateOptions>(given: T, what = "what create takes"): T {
  return requestedOptions(what, given, newInstance);
}

export function validItems<T extends CreateOptions>(given: readonly T[]): readonly T[] {
  if (Array.isArray(given)) return given.map((item: T, i) => validNew(item, elementOf(i)));
  const message = `a batch must be an array, got ${quote(given)}`;
  throw new WorkflowError("INVALID_REQUEST", message);
}

/** Returns how errors name an element of a batch. */
export function elementOf(i: number): string {
  return `instances[${i}]`;
}

export function validEvent(given: SentEvent): SentEvent {
  return requestedOptions("an event", given, event);
}

export function validWait(given: ResultOptions): ResultOptions {
  return requestedOptions("options of result", given, wait);
}

export function validTx<Tx>(method: string, given: TxOptions<Tx>): Tx | undefined {
  return requestedOptions(`options of ${method}`, given, within).tx;
}

/** Encodes a value for a request. One that cannot be encoded is the caller's mistake, and has the given code. */
export function encodedAs<T>(code: WorkflowErrorCode, encode: () => T): T {
  try {
    return encode();
  } catch (error) {
    if (!(error instanceof SerializationError || error instanceof PayloadTooLargeError))
      throw error;
    throw new WorkflowError(code, error.message, { cause: error });
  }
}
