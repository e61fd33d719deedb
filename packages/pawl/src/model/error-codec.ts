import { buildError, isError, readError } from "./codec/error-shape.js";
import { jsonPlusCodec } from "./codec.js";
import { show } from "./show.js";

/** No text of an error is longer than this, whatever was thrown. */
export const errorTextMaxBytes = 65_536;

type Caps = {
  readonly messageMaxLength: number;
  /** How many errors are kept in all: the thrown one, its causes, and those of an AggregateError. */
  readonly errorsMax: number;
};

// These are tried in turn, the most generous first. The last one always fits: it keeps 1 error with a message of 1,024
// units, each of which takes at most 6 bytes when escaped.
const capsToTry: readonly Caps[] = [
  { messageMaxLength: 8_192, errorsMax: 32 },
  { messageMaxLength: 1_024, errorsMax: 8 },
  { messageMaxLength: 1_024, errorsMax: 1 },
];

const nameMaxLength = 256;
const valueMaxBytes = 8_192;

/**
 * Returns the text of any thrown value, and never fails. It describes values that cannot be read or stored, and cuts
 * long ones: an error about an error would hide the first one, and come at a moment when nobody can retry.
 */
export function encodeError(thrown: unknown): string {
  for (const caps of capsToTry) {
    const text = encodeWithin(caps, thrown);
    if (text !== undefined) return text;
  }
  return encode(new Error("an error that cannot be stored"), errorTextMaxBytes);
}

function encodeWithin(caps: Caps, thrown: unknown): string | undefined {
  try {
    return encode(new Copier(caps).copy(thrown), errorTextMaxBytes);
  } catch {
    return undefined; // too large, or nested too deep
  }
}

function encode(value: unknown, maxBytes: number): string {
  return jsonPlusCodec.encode(value, { what: "thrown value", maxBytes });
}

/** Copies a thrown value into one that can be stored. */
class Copier {
  readonly #seen = new Set<object>();
  readonly #messageMaxLength: number;
  #valuesLeft: number;

  constructor({ messageMaxLength, errorsMax }: Caps) {
    this.#messageMaxLength = messageMaxLength;
    this.#valuesLeft = errorsMax;
  }

  copy(thrown: unknown): unknown {
    this.#valuesLeft -= 1;
    if (typeof thrown === "object" && thrown !== null && isError(thrown)) {
      return this.#copyError(thrown);
    }
    try {
      return jsonPlusCodec.decode(encode(thrown, valueMaxBytes));
    } catch (error) {
      // It may resemble an error: some libraries throw an instance of a class of their own with a message.
      return isLikeError(Object(thrown))
        ? this.#copyError(Object(thrown))
        : new Error((error as Error).message);
    }
  }

  #copyError(error: object): Error {
    this.#seen.add(error);
    const { class: className, name, message, code, cause, errors } = readError(error);
    return buildError({
      class: className,
      name: cut(name, nameMaxLength),
      message: cut(message, this.#messageMaxLength),
      ...(code === undefined
        ? {}
        : { code: typeof code === "string" ? cut(code, nameMaxLength) : code }),
      ...(this.#hasRoomFor(cause) ? { cause: this.copy(cause) } : {}),
      ...(errors === undefined ? {} : { errors: this.#copyErrors(errors) }),
    });
  }

  #copyErrors(errors: readonly unknown[]): unknown[] {
    const copies: unknown[] = [];
    for (const error of errors.slice(0, this.#valuesLeft)) {
      if (this.#hasRoomFor(error)) copies.push(this.copy(error));
    }
    return copies;
  }

  #hasRoomFor(value: unknown): boolean {
    if (value === undefined || this.#valuesLeft <= 0) return false;
    return !this.#seen.has(value as object); // this ends a cycle of causes
  }
}

/** Cuts a text, but never between the two halves of a surrogate pair. */
function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const kept = text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
  return `${kept}… (${text.length} characters)`;
}

/** Returns the value that was thrown, as far as `encodeError` could store it. */
export function decodeError(text: string): unknown {
  return jsonPlusCodec.decode(text);
}

/** A stored error as a status and a history show it. */
export type ErrorDescription = { name: string; message: string; code?: string | number };

/**
 * Returns the name, message and code of a stored error. A thrown value that is no error gets a name and message too.
 */
export function describeError(text: string): ErrorDescription {
  const thrown = decodeOrExplain(text);
  if (typeof thrown === "string" && thrown !== "") return { name: "Error", message: thrown };
  if (typeof thrown !== "object" || thrown === null || !isLikeError(thrown)) {
    return { name: "Error", message: `a value was thrown that is no error: ${show(thrown)}` };
  }
  const { name, message, code } = readError(thrown);
  return { name, message, ...(code === undefined ? {} : { code }) };
}

/**
 * Whether this is an error, or an object with a message, such as the `{ code: 4, message: "…" }` that some libraries
 * throw.
 */
function isLikeError(thrown: object): boolean {
  return isError(thrown) || readError(thrown).message !== "";
}

/** Returns the thrown value, or the reason why it cannot be read: one unreadable error must not spoil a whole list. */
function decodeOrExplain(text: string): unknown {
  try {
    return decodeError(text);
  } catch (error) {
    return error;
  }
}
