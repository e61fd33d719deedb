import { buildError, isError, readError } from "./codec/error-shape.js";
import { jsonPlusCodec } from "./codec.js";
import { show } from "./show.js";

/** The text of any error stays below this, whatever was thrown. */
export const errorTextMaxBytes = 65_536;

type Caps = {
  readonly messageMaxLength: number;
  /** In all: the thrown one, its causes, and those of an AggregateError. */
  readonly errorsMax: number;
};

// From generous to what always fits: 1 error of 1,024 units, each at most 6 bytes when escaped.
const capsToTry: readonly Caps[] = [
  { messageMaxLength: 8_192, errorsMax: 32 },
  { messageMaxLength: 1_024, errorsMax: 8 },
  { messageMaxLength: 1_024, errorsMax: 1 },
];

const nameMaxLength = 256;
const valueMaxBytes = 8_192;

/**
 * The text of whatever was thrown. It never fails: what cannot be read or stored is described, what is too long
 * is cut. An error about an error would hide the first one, and come at a moment when nobody can retry.
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

/** Copies what was thrown into something that can be stored. */
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
      // Maybe it is like an error: an instance of some library's class, with a message.
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
    return !this.#seen.has(value as object); // a cycle ends here
  }
}

/** Never between the two halves of a surrogate pair. */
function cut(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text;
  const kept = text.slice(0, maxLength).replace(/[\ud800-\udbff]$/, "");
  return `${kept}… (${text.length} characters)`;
}

export function decodeError(text: string): unknown {
  return jsonPlusCodec.decode(text);
}

export type ErrorDescription = { name: string; message: string; code?: string | number };

/** What a status shows of a stored error. Anything can be thrown; people get a name and a message all the same. */
export function describeError(text: string): ErrorDescription {
  const thrown = decodeOrExplain(text);
  if (typeof thrown === "string" && thrown !== "") return { name: "Error", message: thrown };
  if (typeof thrown !== "object" || thrown === null || !isLikeError(thrown)) {
    return { name: "Error", message: `a value was thrown that is no error: ${show(thrown)}` };
  }
  const { name, message, code } = readError(thrown);
  return { name, message, ...(code === undefined ? {} : { code }) };
}

/** Also what libraries throw in place of one: `{ code: 4, message: "…" }`. */
function isLikeError(thrown: object): boolean {
  return isError(thrown) || readError(thrown).message !== "";
}

/** One unreadable error must not make a whole list of instances unreadable. */
function decodeOrExplain(text: string): unknown {
  try {
    return decodeError(text);
  } catch (error) {
    return error;
  }
}
