import type { Json } from "./codec.js";

/**
 * JSON Schema as data, together with the type that it describes. The HTTP contract is written in it: the OpenAPI
 * document has the schemas as they are, and the client has their types.
 */

export type JsonSchema = {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: string | boolean;
  readonly pattern?: string;
  readonly format?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: string | number;
  readonly items?: JsonSchema;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly oneOf?: readonly JsonSchema[];
  readonly $ref?: string;
};

declare const type: unique symbol;

export type WireSchema<T> = {
  readonly json: JsonSchema;
  /**
   * The name under which the OpenAPI document refers to the schema. Absent for one that is written out where it is
   * used.
   */
  readonly name?: string;
  readonly parts?: readonly WireSchema<unknown>[];
  /** Never present at run time. It only carries the type. */
  readonly [type]?: T;
};

export type TypeOf<S> = S extends WireSchema<infer T> ? T : never;

type Facts = Omit<JsonSchema, "type" | "enum" | "const" | "items" | "properties" | "required">;

export function string(facts: Facts = {}): WireSchema<string> {
  return { json: { type: "string", ...facts } };
}

export function integer(facts: Facts = {}): WireSchema<number> {
  return { json: { type: "integer", ...facts } };
}

export function number(): WireSchema<number> {
  return { json: { type: "number" } };
}

export function stringOrNumber(): WireSchema<string | number> {
  return { json: { type: ["string", "number"] } };
}

export function boolean(): WireSchema<boolean> {
  return { json: { type: "boolean" } };
}

export function anyObject(): WireSchema<object> {
  return { json: { type: "object" } };
}

/** Any JSON. Values that JSON cannot hold are tagged. */
export function value(description: string): WireSchema<Json> {
  return { json: { description } };
}

export function literal<const T extends string | boolean>(only: T): WireSchema<T> {
  return { json: { const: only } };
}

export function oneWordOf<const T extends string>(
  words: readonly T[],
  facts: Facts = {},
): WireSchema<T> {
  return { json: { type: "string", enum: words, ...facts } };
}

export function nullable<T>({ json }: WireSchema<T>): WireSchema<T | null> {
  const { type: only } = json;
  return { json: { ...json, ...(typeof only === "string" ? { type: [only, "null"] } : {}) } };
}

export function array<T>(items: WireSchema<T>, facts: Facts = {}): WireSchema<T[]> {
  return { json: { type: "array", items: refer(items), ...facts }, parts: [items] };
}

export function either<A, B>(a: WireSchema<A>, b: WireSchema<B>): WireSchema<A | B> {
  return { json: { oneOf: [refer(a), refer(b)] }, parts: [a, b] };
}

type Properties = Readonly<Record<string, WireSchema<unknown>>>;
type ObjectOf<R extends Properties, O extends Properties> = {
  readonly [Key in keyof R]: TypeOf<R[Key]>;
} & { readonly [Key in keyof O]?: TypeOf<O[Key]> };

/** An object that has no other properties than these. */
export function object<const R extends Properties, const O extends Properties = {}>(
  required: R,
  optional?: O,
): WireSchema<ObjectOf<R, O>> {
  const all: Properties = { ...required, ...optional };
  const keys = Object.keys(required);
  return {
    json: {
      type: "object",
      properties: Object.fromEntries(Object.entries(all).map(([key, of]) => [key, refer(of)])),
      ...(keys.length === 0 ? {} : { required: keys }),
      additionalProperties: false,
    },
    parts: Object.values(all),
  };
}

/** The same schema under a name of its own. */
export function named<T>(name: string, { json, parts = [] }: WireSchema<T>): WireSchema<T> {
  return { json, name, parts };
}

const refPrefix = "#/components/schemas/";

export function refer({ json, name }: WireSchema<unknown>): JsonSchema {
  return name === undefined ? json : { $ref: refPrefix + name };
}

/** Collects all named schemas that the given ones are made of. */
export function namedSchemas(
  schemas: readonly WireSchema<unknown>[],
  found = new Map<string, JsonSchema>(),
): Map<string, JsonSchema> {
  for (const { name, json, parts = [] } of schemas) {
    if (name !== undefined) {
      if (found.has(name)) continue;
      found.set(name, json);
    }
    namedSchemas(parts, found);
  }
  return found;
}
