import type { WorkflowStepConfig } from "../../authoring/step.js";
import { stackOf } from "../../model/codec/error-shape.js";
import type { EncodeContext } from "../../model/codec/writer.js";
import { describeError, encodeError } from "../../model/error-codec.js";
import { ValidationError } from "../../model/errors.js";
import { quote } from "../../model/quote.js";
import type { Attempt, AttemptOutcome } from "../attempt.js";
import type { EngineContext } from "../context.js";
import type { PartDraft } from "../part-draft.js";
import { retryDelayMs } from "../retry.js";
import type { Settled, Step } from "../step.js";
import type { Body, StepKind, StepMethod } from "./kind.js";

/** `step.do`: a body that is called until it succeeds or has no attempt left. */
export const doKind = {
  type: "do",
  body: { judge },
  takesEvents: false,
  mayEndUnregistered: false,
  keepsResult: true,

  begin(_step, open, body) {
    open.body = body;
    // A single attempt is spent by its start row and by nothing else.
    if (body.policy.maxAttempts === 1 && open.startRow === "unneeded") open.startRow = "needed";
  },

  /** The pause before the next attempt is over, so the body is ready to start. */
  woken: () => null,

  decode: (text, codec) => codec.decode(text),
} satisfies StepKind<Body>;

export const doMethod: StepMethod<Body> = {
  kind: doKind,
  read(name, first, second, { policies }) {
    const hasConfig = typeof first !== "function";
    const callback = hasConfig ? second : first;
    if (typeof callback !== "function") {
      throw new ValidationError(
        `step ${quote(name)} needs a function to call, got ${quote(callback)}`,
      );
    }
    const config = hasConfig ? (first as WorkflowStepConfig | undefined) : undefined;
    const policy = config === undefined ? policies.standard : policies.of(name, config);
    return { callback: callback as Body["callback"], policy };
  },
};

function judge(
  attempt: Attempt,
  outcome: AttemptOutcome,
  draft: PartDraft,
  context: EngineContext,
): Settled | null {
  attempt.open.attempts = attempt.number;
  if ("error" in outcome) return failed(attempt, outcome.error, draft, context);
  const { codec, limits } = context;
  let text: string;
  try {
    text = codec.encode(outcome.value, new ResultOf(attempt.step, limits.stepResultMaxBytes));
  } catch (error) {
    // A result that cannot be stored counts as an error of the author.
    return failed(attempt, error, draft, context);
  }
  // A step that succeeds at its first attempt needs no record of it.
  if (attempt.number > 1) record(attempt, null, draft, context);
  return { ok: true, text };
}

function failed(
  attempt: Attempt,
  error: unknown,
  draft: PartDraft,
  context: EngineContext,
): Settled | null {
  const { step, open, number, body } = attempt;
  const { runtime, overrides } = context;
  const world = { random: runtime.random, now: context.databaseNow() };
  let delayMs = retryDelayMs(error, number, body.policy, world);
  if (delayMs !== null && overrides?.skipsRetryDelay(step.name) === true) delayMs = 0;
  const text = encodeError(error);
  open.lastError = text;
  log(attempt, error, text, delayMs, context);
  if (number > 1 || delayMs !== null) record(attempt, text, draft, context);
  if (delayMs === null) return { ok: false, text };
  open.wakeAt = null;
  open.wake = { inMs: delayMs };
  open.forgetStartRow();
  return null;
}

function record(
  { step, number, startedAtMs }: Attempt,
  error: string | null,
  draft: PartDraft,
  { runtime }: EngineContext,
): void {
  const tookMs = Math.max(0, runtime.clock.now() - startedAtMs);
  draft.addAttempt({ ord: step.ord, n: number, tookMs, error });
}

/**
 * Logs the failed attempt. Stacks are not stored, so the log is the only place that tells where an error was thrown.
 */
function log(
  { of, step, number, body }: Attempt,
  error: unknown,
  text: string,
  retryInMs: number | null,
  { logger }: EngineContext,
): void {
  const { name, message } = describeError(text);
  logger.warn("step.failed", {
    ...of,
    step: step.name,
    attempt: number,
    maxAttempts: body.policy.maxAttempts,
    retryInMs,
    error: `${name}: ${message}`,
    stack: stackOf(error),
  });
}

/**
 * Names a step's result for the codec's errors. Only errors need the text, and making it takes longer than encoding a
 * small result.
 */
class ResultOf implements EncodeContext {
  readonly maxBytes: number;
  readonly #step: Step;

  constructor(step: Step, maxBytes: number) {
    this.#step = step;
    this.maxBytes = maxBytes;
  }

  get what(): string {
    return `result of step ${quote(this.#step.name)}`;
  }
}
