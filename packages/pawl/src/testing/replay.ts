import { entriesOf, type WorkflowEntry } from "../authoring/entry.js";
import type { RepeatedStepNames } from "../authoring/options.js";
import type { ClassEntry, WorkflowClass } from "../authoring/registry.js";
import type { WorkflowDefinition } from "../authoring/define-workflow.js";
import type { WorkflowStep, WorkflowStepConfig } from "../authoring/step.js";
import { defaultTiming, type EngineContext, type RunHost } from "../engine/context.js";
import { Run } from "../engine/run.js";
import { stepMethods } from "../engine/step-api.js";
import { stepPolicies } from "../engine/step-config.js";
import { jsonPlusCodec, type Codec } from "../model/codec.js";
import { decodeError, describeError } from "../model/error-codec.js";
import { ValidationError } from "../model/errors.js";
import { resolveLimits, type Limits } from "../model/limits.js";
import { Invariants } from "../model/invariants.js";
import type { Logger } from "../model/logger.js";
import type { Cancel } from "../model/seams.js";
import { webRuntime } from "../runtime.js";
import { asLoaded, type LoadedStep } from "../store/records.js";
import type { Claimed, LoadedRun } from "../store/store.js";
import type { Part } from "../store/part.js";
import { DivergenceError, type ReplayedStep } from "./divergence-error.js";
import type { ExportedHistory } from "./export-history.js";
import { replayBindings } from "./replay-bindings.js";
import { StepComparison, type CodeEnding } from "./step-comparison.js";

export type ReplayOptions = {
  /** The `env` that the code is given. */
  readonly env?: unknown;
  /**
   * The bindings that the code is given. Default: bindings with which code can create children outside of steps, and do
   * nothing else with them.
   */
  readonly workflows?: unknown;
  /** The codec that stored the history. Default `jsonPlusCodec`. */
  readonly codec?: Codec | undefined;
  /** As in `createWorkflows`. */
  readonly stepDefaults?: WorkflowStepConfig | undefined;
  /**
   * As in `createWorkflows`, except that by default a run may have 1,000,000 steps, and a sleep may last 3,650 days.
   */
  readonly limits?: Partial<Limits> | undefined;
  /** The meaning of a repeated step name. Default: the one under which the history was recorded. */
  readonly repeatedStepNames?: RepeatedStepNames | undefined;
  /**
   * How long the code may await something that is not a step before it calls the next step, in milliseconds of real
   * time. Default 1 second.
   */
  readonly patienceMs?: number | undefined;
};

/** How a replay ended whose code follows the history. */
export type ReplayResult = {
  /**
   * The code returned (`complete`), threw (`errored`), or waits for a step that the history has no outcome of (`open`).
   */
  readonly status: "complete" | "errored" | "open";
  /** The value that the code returned, if it is complete. */
  readonly output?: unknown;
  /** The value that the code threw, if it is errored. */
  readonly error?: unknown;
  /** The steps that the code called beyond the history. */
  readonly added: readonly ReplayedStep[];
};

const PATIENCE_MS = 1_000;
const lenient: Partial<Limits> = { maxStepsPerRun: 1_000_000, maxSleepMs: 3_650 * 86_400_000 };

/**
 * Runs code against a recorded run, without a store and without calling the body of any step. Resolves if the code
 * calls the steps that are recorded, and rejects with a `DivergenceError` that names the first step where it does not.
 * Steps after the recorded ones are no divergence, nor is another order of steps that were called side by side.
 *
 * @example
 * ```ts
 * await replay(JSON.parse(await readFile("order-o1.json", "utf8")), OrderWorkflow);
 * ```
 */
export async function replay(
  history: ExportedHistory,
  workflow: WorkflowClass | ClassEntry | WorkflowDefinition,
  options: ReplayOptions = {},
): Promise<ReplayResult> {
  checkHistory(history);
  const limits = resolveLimits({ ...lenient, ...options.limits });
  const entry = entryOf(history, workflow, limits);
  return new Replay(history, entry, limits, options).result;
}

function checkHistory(history: ExportedHistory): void {
  const isHistory = typeof history === "object" && history !== null && Array.isArray(history.steps);
  if (isHistory && history.format === 1) return;
  throw new ValidationError("replay takes what exportHistory() gave, format 1");
}

function entryOf(
  history: ExportedHistory,
  workflow: WorkflowClass | ClassEntry | WorkflowDefinition,
  limits: Limits,
): WorkflowEntry {
  const given = typeof workflow === "function" ? { name: history.workflow, workflow } : workflow;
  const [entry] = entriesOf({ REPLAYED: given }, limits).values();
  return entry as WorkflowEntry;
}

/** Runs the code of one replay without a runner, and decides how the replay ends. */
class Replay {
  readonly result: Promise<ReplayResult>;
  readonly #history: ExportedHistory;
  readonly #names: RepeatedStepNames;
  readonly #codec: Codec;
  readonly #patienceMs: number;
  readonly #steps: StepComparison;
  readonly #run: Run;
  #ending: CodeEnding | null = null;
  /** Whether every recorded settlement was delivered, and the code has gone on from there. */
  #isThrough = false;
  #patience: Cancel | null = null;
  #settle: ((result: ReplayResult | DivergenceError) => void) | null = null;

  constructor(
    history: ExportedHistory,
    entry: WorkflowEntry,
    limits: Limits,
    options: ReplayOptions,
  ) {
    this.#history = history;
    this.#names = options.repeatedStepNames ?? history.repeatedStepNames;
    this.#codec = options.codec ?? jsonPlusCodec;
    this.#patienceMs = options.patienceMs ?? PATIENCE_MS;
    this.#steps = new StepComparison(history.steps, this.#names);
    this.result = new Promise((resolve, reject) => {
      this.#settle = (result) =>
        result instanceof DivergenceError ? reject(result) : resolve(result);
    });
    const context = this.#context(limits, options);
    const claimed = claimedFrom(history);
    this.#run = new Run(context, this.#host(), claimed, loadedFrom(history));
    this.#run.begin(this.#observed(entry), history.params, history.createdAt);
  }

  #context(limits: Limits, options: ReplayOptions): EngineContext {
    return {
      runtime: { ...webRuntime, clock: { now: () => this.#history.exportedAt } },
      codec: this.#codec,
      limits,
      policies: stepPolicies(options.stepDefaults, limits.maxSleepMs),
      repeatedStepNames: this.#names,
      onDivergence: "hold",
      logger: this.#logger(),
      invariants: new Invariants(this.#logger()),
      env: options.env,
      databaseNow: () => this.#history.exportedAt,
      bindingsFor: (run) => options.workflows ?? replayBindings(run),
      timing: { ...defaultTiming, stallMs: this.#patienceMs, reportStuckMs: this.#patienceMs },
      overrides: null,
    };
  }

  #logger(): Logger {
    return {
      debug() {},
      info() {},
      warn: (event) => {
        if (event === "run.awaitsNoStep") this.#finish(this.#stuck());
      },
      error() {},
    };
  }

  /** Returns the entry such that this replay learns of the steps that its code calls, and of how it ends. */
  #observed(entry: WorkflowEntry): WorkflowEntry {
    const start: WorkflowEntry["start"] = async ({ step, ...rest }) => {
      try {
        const output = await entry.start({ ...rest, step: this.#noting(step) });
        this.#ending = { returned: true };
        return output;
      } catch (error) {
        this.#ending = { threw: error };
        throw error;
      }
    };
    return { ...entry, start };
  }

  #noting(step: WorkflowStep): WorkflowStep {
    const noting = Object.entries(stepMethods).map(([method, { kind }]) => {
      const call = step[method as keyof WorkflowStep] as (...args: unknown[]) => Promise<unknown>;
      return [
        method,
        (name: string, ...rest: unknown[]) => {
          this.#note(kind.type, name);
          return call(name, ...rest);
        },
      ];
    });
    return Object.fromEntries(noting) as WorkflowStep;
  }

  #note(type: string, name: string): void {
    const isNew = this.#steps.noteCall(type, name);
    if (isNew && this.#isThrough) this.#wentOn();
  }

  /** Returns what stands in for the runner: it starts no body, and learns what the run intends from its parts. */
  #host(): RunHost {
    const wentOn = (): void => this.#wentOn();
    return {
      commits: { submit: (run) => this.#submitted(run.part()?.part ?? null) },
      lease: {
        get isFresh() {
          wentOn();
          return false;
        },
      },
      polls: { at() {} },
      turns: { noteSoon() {}, reopen() {}, lost() {}, ended() {} },
    };
  }

  #submitted(part: Part | null): void {
    switch (part?.next.kind) {
      case undefined:
        return;
      case "release":
        return this.#finish(this.#divergence());
      case "complete":
        return this.#finish(this.#completed(part.next.output));
      case "fail":
        return this.#finish(this.#failed(part.next.error));
      default:
        return this.#wentOn();
    }
  }

  #wentOn(): void {
    this.#isThrough = true;
    if (this.#steps.missing() === undefined)
      return this.#finish({ status: "open", added: this.#steps.added() });
    this.#patience ??= webRuntime.scheduler.after(this.#patienceMs, () => {
      this.#finish(this.#divergence());
    });
  }

  #stuck(): ReplayResult | DivergenceError {
    if (this.#steps.missing() !== undefined) return this.#divergence();
    const { status } = this.#history;
    if (status !== "complete" && status !== "errored") {
      return { status: "open", added: this.#steps.added() };
    }
    return new DivergenceError(
      `the recorded run ended here (${status}), and the code awaits something that is not a step`,
      { recorded: null, requested: null },
    );
  }

  #completed(output: string | null): ReplayResult {
    const value = output === null ? undefined : this.#codec.decode(output);
    return { status: "complete", output: value, added: this.#steps.added() };
  }

  #failed(text: string): ReplayResult | DivergenceError {
    const error = decodeError(text);
    const { status } = this.#history;
    if (status === "errored") return { status: "errored", error, added: this.#steps.added() };
    const { name, message } = describeError(text);
    return new DivergenceError(
      `the recorded run is ${status}, and the code throws ${name}: ${message}`,
      { recorded: null, requested: null },
      { cause: this.#ending !== null && "threw" in this.#ending ? this.#ending.threw : error },
    );
  }

  #divergence(): DivergenceError {
    return this.#steps.divergence(this.#ending);
  }

  #finish(result: ReplayResult | DivergenceError): void {
    this.#patience?.();
    this.#run.discard("the replay is over");
    this.#settle?.(result);
    this.#settle = null;
  }
}

function claimedFrom(history: ExportedHistory): Claimed {
  return {
    iid: history.iid,
    workflow: history.workflow,
    id: history.id,
    runNumber: history.runNumber,
    params: history.params,
    createdAt: history.createdAt,
    now: history.exportedAt,
    claimNumber: 1,
    resuming: true,
    takenOver: false,
    takeovers: 0,
    eventCount: 0,
    historyBytes: 0,
  };
}

/** Returns the history as it would be loaded, but without events: one that no step received has not happened here. */
function loadedFrom({ iid, params, steps }: ExportedHistory): LoadedRun {
  return { iid, params, steps: steps.map((step) => staysOpen(asLoaded(step))), events: [] };
}

/** Keeps a step open that was open when it was exported: its wait does not end, and it has attempts left. */
function staysOpen(step: LoadedStep): LoadedStep {
  if (step.open === null) return step;
  const wakeAt = step.open.wakeAt === null ? null : Number.MAX_SAFE_INTEGER;
  return { ...step, open: { ...step.open, attempts: 0, wakeAt } };
}
