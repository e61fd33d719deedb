import { encodeError } from "../../model/error-codec.js";
import { parseDurationMs } from "../../model/duration.js";
import { ValidationError } from "../../model/errors.js";
import { quote } from "../../model/quote.js";
import type { Wake } from "../../model/wake.js";
import type { Settled } from "../step.js";
import type { StepKind, StepMethod } from "./kind.js";

const slept: Settled = { ok: true, text: "null" };

/** `step.sleep` and `step.sleepUntil`: a wait for a time. */
export const sleepKind = {
  type: "sleep",
  body: null,
  takesEvents: false,
  mayEndUnregistered: true,
  keepsResult: false,

  begin(step, open, wake, heardAt, { limits, overrides }) {
    const isFarAhead = "at" in wake && wake.at - heardAt > limits.maxSleepMs;
    // The time is compared with `now`, and `now` differs in every replay. So a refusal is recorded as the step's end.
    if (isFarAhead && open.wakeAt === null) {
      const days = limits.maxSleepMs / 86_400_000;
      const message = `time of step ${quote(step.name)} must be at most ${days} days ahead`;
      open.endsAs = { ok: false, text: encodeError(new ValidationError(message)) };
    }
    const endsNow = open.endsAs !== null || overrides?.skipsSleep(step.name) === true;
    open.wake = endsNow ? { inMs: 0 } : wake;
  },

  woken: () => slept,

  decode: () => undefined,
} satisfies StepKind<Wake>;

export const sleepMethod: StepMethod<Wake> = {
  kind: sleepKind,
  read(name, duration, _, { limits }) {
    const field = `duration of step ${quote(name)}`;
    return { inMs: parseDurationMs(duration as string, { field, maxMs: limits.maxSleepMs }) };
  },
};

export const sleepUntilMethod: StepMethod<Wake> = {
  kind: sleepKind,
  read(name, when) {
    const at = when instanceof Date ? when.getTime() : when;
    if (typeof at === "number" && Number.isFinite(at)) return { at: Math.round(at) };
    throw new ValidationError(
      `time of step ${quote(name)} must be a Date or milliseconds since 1970, got ${quote(when)}`,
    );
  },
};
