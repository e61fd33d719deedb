import type { InstanceStatus } from "../authoring/bindings.js";
import { fromTagged, toTagged } from "../model/codec.js";
import {
  literal,
  named,
  object,
  oneWordOf,
  string,
  stringOrNumber,
  value,
  type TypeOf,
  type WireSchema,
} from "../model/schema.js";
import { instanceStatusNames } from "../model/status.js";

/** How a value travels over HTTP: the schema of its JSON, and both directions. */
export type WireForm<T, Wire> = {
  readonly schema: WireSchema<Wire>;
  /** `id` is that of the instance which was asked. */
  readonly toWire: (given: T, id: string) => Wire;
  readonly fromWire: (wire: Wire) => T;
};

export const anyStatus = oneWordOf(instanceStatusNames);

export const errorDescription = named(
  "ErrorDescription",
  object({ name: string(), message: string() }, { code: stringOrNumber() }),
);

/** How a run came out, if it has ended. */
export const outcomeFields = {
  error: errorDescription,
  output: value("What the workflow returned, tagged where JSON cannot hold it."),
};

export const instanceStatus = named("InstanceStatus", object({ status: anyStatus }, outcomeFields));

export const instanceAnswer = named("Instance", object({ id: string(), details: instanceStatus }));

type WireStatus = TypeOf<typeof instanceStatus>;
type Outcome = Omit<InstanceStatus, "status">;

export function wireStatus({ status, ...rest }: InstanceStatus): WireStatus {
  return { status, ...wireOutcome(rest) };
}

function statusFrom({ status, ...rest }: WireStatus): InstanceStatus {
  return { status, ...outcomeFrom(rest) };
}

export function wireOutcome(given: Outcome): Omit<WireStatus, "status"> {
  return {
    ...(given.error === undefined ? {} : { error: given.error }),
    ...("output" in given ? { output: toTagged(given.output, "output") } : {}),
  };
}

export function outcomeFrom(given: Omit<WireStatus, "status">): Outcome {
  return {
    ...(given.error === undefined ? {} : { error: given.error }),
    ...("output" in given ? { output: fromTagged(given.output) } : {}),
  };
}

/** The status of the instance that was asked. */
export const statusForm: WireForm<InstanceStatus, TypeOf<typeof instanceAnswer>> = {
  schema: instanceAnswer,
  toWire: (status, id) => ({ id, details: wireStatus(status) }),
  fromWire: ({ details }) => statusFrom(details),
};

/** The answer of an operation that has nothing to tell but that it was carried out. */
export const doneForm: WireForm<void, { readonly ok: true }> = {
  schema: named("Ok", object({ ok: literal(true) })),
  toWire: () => ({ ok: true }),
  fromWire: () => {},
};

/**
 * Options that are plain JSON and may all be left out. The compiler asks for each field of `Options`, and for no other.
 * `name` is that of their schema in the OpenAPI document.
 */
export function optionsForm<Options extends object>(
  name: string,
  fields: { readonly [F in keyof Required<Options>]: WireSchema<Exclude<Options[F], undefined>> },
): WireForm<Options, Options> {
  const schema = named(name, object({}, fields)) as WireSchema<Options>;
  return { schema, toWire: (options) => options, fromWire: (options) => options };
}
