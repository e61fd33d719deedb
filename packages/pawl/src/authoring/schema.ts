import type { StandardSchemaV1 } from "@standard-schema/spec";

/** A schema of zod, valibot, arktype, or any other library that follows standardschema.dev. */
export type Schema<Input = unknown, Output = Input> = StandardSchemaV1<Input, Output>;

/** The schemas of event payloads, by event type. */
export type EventSchemas = { readonly [type: string]: Schema };

export type SchemaInput<S> = S extends Schema ? StandardSchemaV1.InferInput<S> : never;
export type SchemaOutput<S> = S extends Schema ? StandardSchemaV1.InferOutput<S> : never;

type Validated =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string };

/** A message shows this many issues: a list of ten thousand bad items must not become a message of megabytes. */
const ISSUES_SHOWN = 10;

/** Returns the value that the schema makes of the given one, or a message that lists what is wrong and where. */
export async function validate(schema: Schema, value: unknown): Promise<Validated> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return { ok: true, value: result.value };
  const shown = result.issues.slice(0, ISSUES_SHOWN).map(describe);
  const hidden = result.issues.length - shown.length;
  return { ok: false, message: shown.join("; ") + (hidden > 0 ? `; and ${hidden} more` : "") };
}

function describe({ path = [], message }: StandardSchemaV1.Issue): string {
  if (path.length === 0) return message;
  const keys = path.map((segment) => (typeof segment === "object" ? segment.key : segment));
  return `${pathOf(keys)}: ${message}`;
}

function pathOf(keys: readonly PropertyKey[]): string {
  return keys
    .map((key, i) => (typeof key === "number" ? `[${key}]` : `${i === 0 ? "" : "."}${String(key)}`))
    .join("");
}
