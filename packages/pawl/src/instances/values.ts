import type { WorkflowEntry } from "../authoring/entry.js";
import { validate, type Schema } from "../authoring/schema.js";
import type { Codec, EncodeContext } from "../model/codec.js";
import { PayloadTooLargeError, SerializationError, WorkflowError } from "../model/errors.js";
import type { WorkflowErrorCode } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { InstancesContext } from "./ports.js";

type Border = Pick<InstancesContext<never>, "codec" | "limits">;

/** The text of a value, or null for undefined. Without a schema there is nothing to wait for. */
type Encoded = string | null | Promise<string | null>;

/** Checks params by the workflow's schema, and encodes them. `what` is how errors name them. */
export function encodeParams(
  { codec, limits }: Border,
  { params: schema }: WorkflowEntry,
  params: unknown,
  what = "params",
): Encoded {
  const context = { what, maxBytes: limits.paramsMaxBytes };
  return schema === undefined
    ? encode(codec, params, context, "INVALID_PARAMS")
    : encodeChecked(codec, schema, params, context, "INVALID_PARAMS");
}

/** Checks an event's payload by the schema of its type, and encodes it. */
export function encodePayload(
  { codec, limits }: Border,
  { events = {} }: WorkflowEntry,
  { type, payload }: { readonly type: string; readonly payload?: unknown },
): Encoded {
  const schema = Object.hasOwn(events, type) ? events[type] : undefined;
  const context = {
    what: `payload of event ${quote(type)}`,
    maxBytes: limits.eventPayloadMaxBytes,
  };
  return schema === undefined
    ? encode(codec, payload, context, "INVALID_EVENT_PAYLOAD")
    : encodeChecked(codec, schema, payload, context, "INVALID_EVENT_PAYLOAD");
}

async function encodeChecked(
  codec: Codec,
  schema: Schema,
  given: unknown,
  context: EncodeContext,
  code: WorkflowErrorCode,
): Promise<string | null> {
  const validated = await validate(schema, given);
  if (validated.ok) return encode(codec, validated.value, context, code);
  throw new WorkflowError(code, `${context.what}: ${validated.message}`);
}

function encode(
  codec: Codec,
  given: unknown,
  context: EncodeContext,
  code: WorkflowErrorCode,
): string | null {
  if (given === undefined) return null;
  try {
    return codec.encode(given, context);
  } catch (error) {
    if (error instanceof PayloadTooLargeError) {
      throw new WorkflowError("PAYLOAD_TOO_LARGE", error.message, { cause: error });
    }
    if (error instanceof SerializationError) {
      throw new WorkflowError(code, error.message, { cause: error });
    }
    throw error;
  }
}

export function decodeStored(codec: Codec, text: string | null): unknown {
  return text === null ? undefined : codec.decode(text);
}
