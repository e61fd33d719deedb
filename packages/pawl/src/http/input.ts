import { invalidRequest } from "../instances/requests.js";
import { requestedOptions } from "../model/known-options.js";
import { quote } from "../model/quote.js";
import type { Route } from "./contract.js";
import type { WireSchema } from "../model/schema.js";
import type { WebRequest, WebUrl } from "../model/web.js";

/** Returns one value of the query, or undefined. A value that is given twice is refused. */
export function queryValue({ searchParams }: WebUrl, name: string): string | undefined {
  const [value, ...more] = searchParams.getAll(name);
  if (more.length > 0) throw invalidRequest(`${name} must be given once`);
  return value;
}

/** Refuses keys that the route does not take. A misspelt filter would otherwise answer with everything. */
export function checkQuery({ query = {} }: Pick<Route, "query">, { searchParams }: WebUrl): void {
  const known = Object.keys(query);
  for (const name of searchParams.keys()) {
    if (known.includes(name)) continue;
    const takes = known.length === 0 ? "no query" : known.join(", ");
    throw invalidRequest(`the query has no ${quote(name)}; this route takes ${takes}`);
  }
}

/** Returns a whole number of the query. Its range is checked by the operation that takes it. */
export function queryNumber(url: WebUrl, name: string): number | undefined {
  const value = queryValue(url, name);
  if (value === undefined) return undefined;
  if (!/^\d{1,15}$/.test(value)) {
    throw invalidRequest(`${name} must be a whole number, got ${quote(value)}`);
  }
  return Number(value);
}

/**
 * Refuses keys that the schema does not have, which as a rule are misspelt. Types and limits of the values are checked
 * by the operation that takes them, with an error code for each.
 */
export function checkKeys(
  { json, parts = [] }: WireSchema<unknown>,
  given: unknown,
  what: string,
): void {
  if (json.type === "array" && Array.isArray(given)) {
    const [items] = parts;
    if (items !== undefined) given.forEach((item, i) => checkKeys(items, item, `${what}[${i}]`));
  }
  if (json.type !== "object") return;
  const known = Object.keys(json.properties ?? {});
  const named = Object.fromEntries(known.map((key) => [key, true] as const));
  const object = requestedOptions(what, given as object, named);
  for (const [i, key] of known.entries()) {
    const part = parts[i];
    const value: unknown = (object as Record<string, unknown>)[key];
    if (part !== undefined && value !== undefined) checkKeys(part, value, `${what}.${key}`);
  }
}

const keyPattern = /^[a-zA-Z0-9_-]{1,64}$/;

export function idempotencyKey({ headers }: WebRequest): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (keyPattern.test(key)) return key;
  throw invalidRequest(
    'Idempotency-Key must have 1 to 64 letters, digits, "_" and "-", such as a UUID',
  );
}

/**
 * Refuses forms. A page of another site can make a browser send forms and plain text here, with the user's cookies, but
 * no JSON without asking first. Browsers send the origin with what they post; a request without one may have any
 * content type.
 */
export function refuseForms({ method, headers }: WebRequest): void {
  if (method !== "POST" || headers.get("origin") === null) return;
  if (/^application\/json\s*(;|$)/i.test(headers.get("content-type") ?? "")) return;
  throw invalidRequest("from a browser, content-type must be application/json");
}

/**
 * Tells whether the reader takes server-sent events, as an `EventSource` does. Such readers come back by themselves.
 */
export function acceptsEvents({ headers }: WebRequest): boolean {
  return (headers.get("accept") ?? "").includes("text/event-stream");
}
