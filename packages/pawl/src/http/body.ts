import { maxDepth } from "../model/codec/tags.js";
import { WorkflowError } from "../model/errors.js";
import type { Limits } from "../model/limits.js";
import type { Scheduler } from "../model/seams.js";
import { strictUtf8, type ByteReader, type ByteStream, type WebRequest } from "../model/web.js";

/** Values may be nested as deeply as the codec allows. The request wraps them in objects and arrays of its own. */
const MAX_DEPTH = maxDepth + 8;
/** A client that stalls for longer has gone, or wants to keep the server busy. */
const BODY_TIMEOUT_MS = 30_000;

type BodyLimits = Pick<Limits, "requestMaxBytes" | "requestMaxKeys">;

/** Reads the text of a body, which is empty if there is none. A body that is too long is cut off at once. */
export async function readBody(
  { headers, body, bodyUsed }: WebRequest,
  limits: BodyLimits,
  scheduler: Scheduler,
): Promise<string> {
  if (Number(headers.get("content-length")) > limits.requestMaxBytes) throw tooLarge(limits);
  if (body === null) return "";
  if (bodyUsed === true) throw consumed();
  const reader = readerOf(body as ByteStream);
  const decoder = strictUtf8();
  let isLate = false;
  const cancelTimer = scheduler.grace(BODY_TIMEOUT_MS, () => {
    isLate = true;
    dismiss(reader);
  });
  let text = "";
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (isLate) throw invalid(`the body did not come within ${BODY_TIMEOUT_MS} ms`);
      if (done || value === undefined) return text + decoder.decode();
      bytes += value.byteLength;
      if (bytes > limits.requestMaxBytes) {
        dismiss(reader);
        throw tooLarge(limits);
      }
      text += decoder.decode(value, { stream: true });
    }
  } catch (error) {
    if (error instanceof WorkflowError) throw error;
    throw invalid("the body is not UTF-8 text, or did not come to its end", error);
  } finally {
    cancelTimer();
  }
}

/** Takes the reader of a body. A body that some middleware has read is locked, or looks empty. */
function readerOf(body: ByteStream): ByteReader {
  try {
    return body.getReader();
  } catch (error) {
    throw consumed(error);
  }
}

/** Cancels a body. Neither the rest of it nor the outcome of the cancellation matters. */
function dismiss(reader: ByteReader): void {
  reader.cancel().catch(() => {});
}

/** Parses the JSON of a body. Returns undefined for an empty one. */
export function parseBody(text: string, limits: BodyLimits): unknown {
  if (text === "") return undefined;
  checkBounds(text, limits);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalid("the body is not JSON", error);
  }
}

/** Refuses texts that would take too much memory or nest too deeply, before anything is built from them. */
function checkBounds(text: string, { requestMaxKeys }: BodyLimits): void {
  let depth = 0;
  let keys = 0;
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case 0x22: // "
        i = endOfString(text, i);
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth += 1;
        keys += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1;
        break;
      case 0x3a: // :
        keys += 1;
        break;
      default:
    }
    if (depth > MAX_DEPTH) throw invalid(`the body has more than ${MAX_DEPTH} levels of nesting`);
    if (keys > requestMaxKeys) {
      throw invalid(
        `the body has more than ${requestMaxKeys} keys, arrays and objects (limits.requestMaxKeys)`,
      );
    }
  }
}

function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === 0x5c) backslashes += 1;
  return backslashes % 2 === 1;
}

function tooLarge({ requestMaxBytes }: BodyLimits): WorkflowError {
  return new WorkflowError(
    "PAYLOAD_TOO_LARGE",
    `the body has more than ${requestMaxBytes} bytes (limits.requestMaxBytes)`,
  );
}

function consumed(cause?: unknown): WorkflowError {
  return invalid("the body was already read, before it came here: give a clone()", cause);
}

function invalid(message: string, cause?: unknown): WorkflowError {
  return new WorkflowError("INVALID_REQUEST", message, cause === undefined ? {} : { cause });
}
