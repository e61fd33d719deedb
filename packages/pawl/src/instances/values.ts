import type { WorkflowEntry } from "../authoring/entry.js";
import { validate, type Schema } from "../authoring/schema.js";
import type { Codec, EncodeContext } from "../model/codec.js";
import { PayloadTooLargeError, SerializationError, WorkflowError } from "../model/errors.js";
import type { WorkflowErrorCode } from "../model/errors.js";
import { quote } from "../model/quote.js";
import type { InstancesContext } from "./ports.js";

/** What callers hand in, checked by the workflow's schema and encoded. Undefined is stored as nothing. */
type Border = Pick<InstancesContext<never>, "codec" | "limits">;

/** Without a schema there is nothing to wait for. */
type Encoded = string | null | Promise<string | null>;

export function encodeParams(
  { codec, limits }: Border,
  entry: WorkflowEntry,
  params: unknown,
  what = "params",
): Encoded {
  const context = { what, maxBytes: limits.paramsMaxBytes };
  return encode(codec, entry.params, params, context, "INVALID_PARAMS");
}

export function encodePayload(
  { codec, limits }: Border,
  entry: WorkflowEntry,
  event: { readonly type: string; readonly payload?: unknown },
): Encoded {
  const { events = {} } = entry;
  const schema = Object.hasOwn(events, event.type) ? events[event.type] : undefined;
  const context = {
    what: `payload of event ${quote(event.type)}`,
    maxBytes: limits.eventPayloadMaxBytes,
  };
  return encode(codec, schema, event.payload, context, "INVALID_EVENT_PAYLOAD");
}

function encode(
  codec: Codec,
  schema: Schema | undefined,
  given: unknown,
  context: EncodeContext,
  code: WorkflowErrorCode,
): Encoded {
  if (schema === undefined) return encodeValid(codec, given, context, code);
  return validate(schema, given).then((validated) => {
    if (validated.ok) return encodeValid(codec, validated.value, context, code);
    throw new WorkflowError(code, `${context.what}: ${validated.message}`);
  });
}

function encodeValid(
  codec: Codec,
  value: unknown,
  context: EncodeContext,
  code: WorkflowErrorCode,
): string | null {
  if (value === undefined) return null;
  try {
    return codec.encode(value, context);
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
