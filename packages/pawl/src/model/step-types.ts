/** The types of steps, as rows store them. */
export type StepType = "do" | "sleep" | "waitForEvent";

/** The traits of a step's type that readers of its row need. Its behaviour is in `engine/kinds/`. */
export type StepTraits = {
  /** Whether it calls a body of the author's, in attempts that are recorded. */
  readonly hasAttempts: boolean;
  /** The reason of its wait, as a history shows it. It is never shown for a kind that does not wait. */
  readonly waitReason: string;
};

export const stepTypes = {
  do: { hasAttempts: true, waitReason: "retry" },
  sleep: { hasAttempts: false, waitReason: "sleep" },
  waitForEvent: { hasAttempts: false, waitReason: "event" },
} as const satisfies Record<StepType, StepTraits>;

/** Returns whether this code knows the type. Newer code may have written others. */
export function isStepType(type: string): type is StepType {
  return Object.hasOwn(stepTypes, type);
}

/** Returns the traits of the type that a row names. */
export function stepTraits(type: string): StepTraits {
  return isStepType(type) ? stepTypes[type] : { hasAttempts: false, waitReason: type };
}

/** How a step stands, as rows store it. */
export type StepStatus = "running" | "waiting" | "completed" | "errored";

/** Whether a step of this status has its result, or its final error. */
export function isSettled(status: string | undefined): boolean {
  return status === "completed" || status === "errored";
}
