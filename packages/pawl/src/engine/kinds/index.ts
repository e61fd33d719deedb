import type { StepType } from "../../model/step-types.js";
import { doKind } from "./do.js";
import type { StepKind } from "./kind.js";
import { sleepKind } from "./sleep.js";
import { waitForEventKind } from "./wait-for-event.js";

/** Every kind of step, by the type that its rows have. */
const kinds = {
  do: doKind,
  sleep: sleepKind,
  waitForEvent: waitForEventKind,
} satisfies { readonly [T in StepType]: StepKind & { readonly type: T } };

const byType: ReadonlyMap<string, StepKind> = new Map(Object.entries(kinds));

/**
 * Returns the kind of step that has this type. It is undefined for a type that newer code has written: nothing can be
 * done with such a step here.
 */
export function stepKindOf(type: string): StepKind | undefined {
  return byType.get(type);
}
