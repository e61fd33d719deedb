/** The types of steps, as rows store them. */
export type StepType = "do" | "sleep" | "waitForEvent";

/** What readers of a step's row must know of its type; `engine/kinds/` has what it does. */
export type StepTraits = {
  /** It calls a body of the author's, in attempts that are recorded. */
  readonly hasAttempts: boolean;
  /** What its wait is for, as history says it. */
  readonly waitReason: string;
};

export const stepTypes = {
  do: { hasAttempts: true, waitReason: "retry" },
  sleep: { hasAttempts: false, waitReason: "sleep" },
  waitForEvent: { hasAttempts: false, waitReason: "event" },
} as const satisfies Record<StepType, StepTraits>;

/** The traits of a type as a row names it. Newer code may have written a type that this code does not know. */
export function stepTraits(type: string): StepTraits {
  return Object.hasOwn(stepTypes, type)
    ? stepTypes[type as StepType]
    : { hasAttempts: false, waitReason: type };
}
