import { PayloadTooLargeError, SerializationError } from "../errors.js";
import { quote } from "../quote.js";
import { toBase64 } from "./base64.js";
import { isError, readError } from "./error-shape.js";
import { pathText } from "./path.js";
import { escapeKey, isByteClassName, maxBigintDigits, maxDepth, reservedKey } from "./tags.js";
import { isLongerInUtf8, utf8Length } from "./utf8.js";

/** Tells a codec about the value that it encodes. */
export type EncodeContext = {
  /** Names the owner of the value in error messages, such as `step "charge"`. */
  readonly what: string;
  /** How long the encoded text may be, in UTF-8 bytes. */
  readonly maxBytes: number;
};

/** Returns the encoded text of a value. Throws `SerializationError` or `PayloadTooLargeError`. */
export function writeText(value: unknown, context: EncodeContext): string {
  const text = new Writer(context).writeRoot(value);
  if (isLongerInUtf8(text, context.maxBytes)) throw tooLarge(context, `${utf8Length(text)} bytes`);
  return text;
}

function tooLarge({ what, maxBytes }: EncodeContext, size: string): PayloadTooLargeError {
  return new PayloadTooLargeError(
    `${what}: the encoded value has ${size}, the limit is ${maxBytes} bytes`,
  );
}

// A value that is longer than its limit by this factor is refused before it is written to the end. Thirty nested pairs
// of shared references, for instance, would be a billion values.
const hopelesslyTooLarge = 4;
const brackets = 2;

// The characters that JSON may have to escape: quotes, backslashes, control characters, and surrogates, which may be
// lone.
const needsEscape = /[^ !#-[\]-\ud7ff\ue000-\uffff]/;

/**
 * Walks a value once, reads every property once and writes text as it goes, so no getter can give one value to a check
 * and another to the text. It takes 1.5 to 2 times as long as `JSON.stringify`, which would drop values silently.
 */
class Writer {
  // The place where the walk is: `keys[i]` is being written in `containers[i]`. Only error messages use them.
  readonly #containers: object[] = [];
  readonly #keys: (string | number)[] = [];
  #depth = 0;
  #written = 0;

  readonly #context: EncodeContext;
  readonly #writtenMax: number;

  constructor(context: EncodeContext) {
    this.#context = context;
    this.#writtenMax = context.maxBytes * hopelesslyTooLarge;
  }

  writeRoot(value: unknown): string {
    try {
      return this.#value(value);
    } catch (error) {
      if (error instanceof SerializationError || error instanceof PayloadTooLargeError) throw error;
      const { message } = readError(Object(error));
      throw this.#refusal(`a value that cannot be read (${quote(message)})`);
    }
  }

  #value(value: unknown): string {
    switch (typeof value) {
      case "string":
        return this.#text(value);
      case "number":
        return this.#number(value);
      case "boolean":
        return value ? "true" : "false";
      case "object":
        return value === null ? "null" : this.#object(value);
      case "undefined":
        return `{"${reservedKey}":"undefined"}`;
      case "bigint":
        return this.#bigint(String(value));
      case "symbol":
      case "function":
        break;
    }
    throw this.#refusal(`a ${typeof value}`);
  }

  #bigint(digits: string): string {
    if (digits.length > maxBigintDigits) {
      throw this.#refusal(`a bigint of more than ${maxBigintDigits} digits`);
    }
    return this.#tagged("bigint", this.#text(digits));
  }

  #text(text: string): string {
    this.#spend(text.length);
    return needsEscape.test(text) ? JSON.stringify(text) : `"${text}"`;
  }

  #number(number: number): string {
    if (Number.isFinite(number) && !Object.is(number, -0)) return String(number);
    return this.#tagged("number", `"${Object.is(number, -0) ? "-0" : number}"`);
  }

  #object(value: object): string {
    if (Array.isArray(value)) return this.#array(value);
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === null || isObjectPrototype(prototype)) return this.#plainObject(value);
    if (isError(value)) return this.#error(value);
    return this.#instance(value, Object.getPrototypeOf(prototype));
  }

  #array(array: readonly unknown[]): string {
    this.#spend(array.length + brackets);
    const depth = this.#enter(array);
    let text = "";
    for (let i = 0; i < array.length; i++) {
      this.#keys[depth] = i;
      text += (i === 0 ? "" : ",") + this.#value(array[i]);
    }
    this.#depth = depth;
    return `[${text}]`;
  }

  #plainObject(object: object): string {
    const keys = Object.keys(object);
    this.#spend(keys.length + brackets);
    const depth = this.#enter(object);
    let text = "";
    for (const key of keys) {
      this.#keys[depth] = key;
      const value = (object as Record<string, unknown>)[key];
      text += `${text === "" ? "" : ","}${this.#text(escapeKey(key))}:${this.#value(value)}`;
    }
    this.#depth = depth;
    return `{${text}}`;
  }

  #error(error: object): string {
    const { class: className, name, message, code, cause, errors } = readError(error);
    const depth = this.#enter(error);
    let text = `{"${reservedKey}":"Error","name":${this.#text(name)}`;
    if (className !== name) text += `,"class":"${className}"`;
    text += `,"message":${this.#text(message)}`;
    if (code !== undefined) text += `,"code":${JSON.stringify(code)}`;
    if (cause !== undefined) {
      this.#keys[depth] = "cause";
      text += `,"cause":${this.#value(cause)}`;
    }
    if (errors !== undefined) {
      this.#keys[depth] = "errors";
      text += `,"errors":${this.#array(errors)}`;
    }
    this.#depth = depth;
    return `${text}}`;
  }

  /**
   * Writes an instance of a built-in class, and refuses any other. The prototype of a built-in is followed by that of
   * Object. A subclass has a longer chain; it would come back as its base class.
   */
  #instance(value: object, grandPrototype: unknown): string {
    if (ArrayBuffer.isView(value)) {
      const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
      return this.#bytes(value, bytes);
    }
    if (grandPrototype === null || !isObjectPrototype(grandPrototype)) throw this.#strange(value);
    switch (builtInName(value)) {
      case "Date":
        return this.#date(value as Date);
      case "Map":
        return this.#map(value as ReadonlyMap<unknown, unknown>);
      case "Set":
        return this.#set(value as ReadonlySet<unknown>);
      case "ArrayBuffer":
        return this.#bytes(value, new Uint8Array(value as ArrayBuffer));
      default:
        throw this.#strange(value);
    }
  }

  #date(date: Date): string {
    return this.#tagged("Date", Number.isNaN(date.getTime()) ? "null" : `"${date.toISOString()}"`);
  }

  #map(map: ReadonlyMap<unknown, unknown>): string {
    this.#spend(map.size + brackets);
    const depth = this.#enter(map);
    const entries: string[] = [];
    for (const [key, value] of map) {
      this.#keys[depth] = `[key of entry ${entries.length}]`;
      const keyText = this.#value(key);
      this.#keys[depth] = `[value of entry ${entries.length}]`;
      entries.push(`[${keyText},${this.#value(value)}]`);
    }
    this.#depth = depth;
    return this.#tagged("Map", `[${entries.join(",")}]`);
  }

  #set(set: ReadonlySet<unknown>): string {
    this.#spend(set.size + brackets);
    const depth = this.#enter(set);
    const items: string[] = [];
    for (const item of set) {
      this.#keys[depth] = `[item ${items.length}]`;
      items.push(this.#value(item));
    }
    this.#depth = depth;
    return this.#tagged("Set", `[${items.join(",")}]`);
  }

  #bytes(value: object, bytes: Uint8Array): string {
    const name = builtInName(value);
    if (!isByteClassName(name)) throw this.#strange(value);
    this.#spend(bytes.length);
    return this.#tagged(name, `"${toBase64(bytes)}"`);
  }

  #tagged(tag: string, valueText: string): string {
    return `{"${reservedKey}":"${tag}","value":${valueText}}`;
  }

  /** Counts what is written. It counts too little rather than too much, so that it refuses no value that would fit. */
  #spend(units: number): void {
    this.#written += units;
    if (this.#written > this.#writtenMax) {
      throw this.#cycle() ?? tooLarge(this.#context, `more than ${this.#writtenMax} bytes`);
    }
  }

  /**
   * Enters a container and returns its depth. It keeps no set of seen objects: a cycle runs into the limit of depth or
   * that of bytes, and is recognised there.
   */
  #enter(container: object): number {
    const depth = this.#depth;
    if (depth === maxDepth) {
      throw this.#cycle() ?? this.#refusal(`more than ${maxDepth} levels of nesting`);
    }
    this.#containers[depth] = container;
    this.#depth = depth + 1;
    return depth;
  }

  #cycle(): SerializationError | undefined {
    const open = this.#containers.slice(0, this.#depth);
    const again = open.findIndex((container, i) => open.indexOf(container) < i);
    if (again === -1) return undefined;
    const first = open.indexOf(open[again] as object);
    this.#depth = again;
    return this.#refusal(`a cycle back to ${pathText(this.#containers, this.#keys, first)}`);
  }

  #strange(value: object): SerializationError {
    const name = builtInName(value);
    if (name === "Promise") return this.#refusal("a Promise (is an await missing?)");
    const className: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name;
    return this.#refusal(
      `an instance of ${typeof className === "string" ? quote(className) : name}`,
    );
  }

  #refusal(found: string): SerializationError {
    const path = pathText(this.#containers, this.#keys, this.#depth);
    return new SerializationError(`${this.#context.what}: cannot store ${found} at ${path}`);
  }
}

/** Whether this is the prototype of plain objects, in this realm or another (a vm context, a test environment). */
function isObjectPrototype(prototype: unknown): boolean {
  if (prototype === Object.prototype) return true;
  return (
    typeof prototype === "object" &&
    prototype !== null &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, "isPrototypeOf")
  );
}

function builtInName(value: object): string {
  return Object.prototype.toString.call(value).slice("[object ".length, -1);
}
