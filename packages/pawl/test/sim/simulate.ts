import { createHash } from "node:crypto";
import { assemble } from "../../src/assemble.js";
import { WorkflowEntrypoint, type WorkflowEvent } from "../../src/authoring/entrypoint.js";
import type { StepContext, WorkflowStep } from "../../src/authoring/step.js";
import { decodeError } from "../../src/model/error-codec.js";
import type { Hooks } from "../../src/model/hooks.js";
import type { RepeatedStepNames } from "../../src/authoring/options.js";
import type { Logger } from "../../src/model/logger.js";
import { defaultRunnerOptions, type TickOptions } from "../../src/runner/options.js";
import type { Runner } from "../../src/runner/runner.js";
import type { ClaimAnswer, Claimed, NewInstance, SendEventAnswer } from "../../src/store/store.js";
import type { Part, PartAnswer } from "../../src/store/part.js";
import { Checker, checkRecords, Violation, type Snapshot } from "./checker.js";
import { emptyDatabase, type Database } from "./database.js";
import { faultyStore, type Applied, type Fault, type FaultPlan, type Verb } from "./faults.js";
import { Ledger } from "./ledger.js";
import { OutboxChecker, type Posted, type Told } from "./outbox-checker.js";
import {
  execute,
  looseBranches,
  messageOf,
  normal,
  outcomesOf,
  stepsBehindForeignAwaits,
  type DoNode,
  type Node,
  type Outside,
} from "./program.js";
import { newIncarnation, Witness, type Incarnation } from "./witness.js";
import { Process, World } from "./world.js";

export type Scenario = {
  readonly seed: number;
  readonly programs: readonly Node[];
  readonly processes: number;
  /** Decides the fault of a call. */
  readonly faultOf: (call: Call) => Fault | null;
  readonly skewMs: number;
  readonly liveRuns: number;
  /** Whether some processes run newer code. */
  readonly changesCode: boolean;
  readonly batchParts: number;
  readonly outages: readonly { readonly fromMs: number; readonly toMs: number }[];
  /** The acts of people meanwhile. */
  readonly client: (client: Client) => Promise<void>;
  /** Faults end here. After that everything must come to an end by itself. */
  readonly healAtMs: number;
  /** Whether most processes have hooks. */
  readonly hooks?: boolean;
  /** Default "cached". */
  readonly repeatedStepNames?: RepeatedStepNames | undefined;
};

/**
 * The name "r1 commit 3" is the third commit of process r1, so that a call keeps its name when others come or
 * go.
 */
export type Call = { readonly name: string; readonly process: string; readonly verb: Verb };

export type Report = {
  readonly hash: string;
  readonly sometimes: ReadonlyMap<string, number>;
  readonly outcomes: readonly string[];
  readonly log: readonly string[];
};

/** After these verbs the database is as it was before. */
const READS: ReadonlySet<Verb> = new Set([
  "nextDueInMs",
  "unknownLanes",
  "unknownHooks",
  "get",
  "load",
  "adopt",
  "heartbeat",
  "poll",
]);
const LEASE_MS = 1_000;
/** How long it takes until everyone has heard that all is over. */
const SETTLE_MS = 10_000;
/** The same with hooks, because a lost delivery is made again after a minute. */
const SETTLE_HOOKS_MS = 5 * 60_000;
const RESUME_MS = 5_000;
/** How long a client waits for a process. */
const ANSWER_MS = 500;
const END_MS = 10 * 60_000;

/**
 * Plays one seed, from the first create to the last instance's end. Throws a `Violation` with the history.
 */
export async function simulate(scenario: Scenario): Promise<Report> {
  const simulation = new Simulation(scenario, await emptyDatabase());
  const rejections: unknown[] = [];
  const onRejection = (reason: unknown): void => void rejections.push(reason);
  process.on("unhandledRejection", onRejection);
  try {
    const report = await simulation.run();
    if (rejections.length > 0) throw new Violation(`unhandled rejection: ${String(rejections[0])}`);
    return report;
  } catch (error) {
    if (error instanceof Error) error.message += `\n\n${simulation.log.slice(-400).join("\n")}`;
    throw error;
  } finally {
    process.off("unhandledRejection", onRejection);
  }
}

/** The acts that people can do. Errors of a store that is away are theirs to live with. */
export interface Client {
  readonly world: World;
  readonly ids: readonly string[];
  /** Sends an event, itself or through a process that also runs. */
  send(id: string, type: string, inRunner?: boolean): Promise<void>;
  /** Sends an event for a wait, about when the wait ends. */
  sendAtDeadline(type?: string, inRunner?: boolean): Promise<void>;
  control(id: string, verb: "pause" | "resume" | "terminate" | "restart"): Promise<void>;
  /** Stops a runner properly. Another takes its place. */
  stopARunner(): void;
}

class Simulation implements FaultPlan {
  readonly freezeMs = LEASE_MS * 3;
  readonly log: string[] = [];
  readonly #scenario: Scenario;
  readonly #world: World;
  readonly #database: Database;
  readonly #ledger = new Ledger();
  readonly #checker: Checker;
  readonly #witness: Witness;
  readonly #outbox = new OutboxChecker();
  readonly #sometimes = new Map<string, number>();
  readonly #runners = new Map<Process, Runner>();
  /** How each process sends events. */
  readonly #senders = new WeakMap<Process, (id: string, type: string) => Promise<void>>();
  readonly #created = new Set<string>();
  /** How often each process has called each verb. */
  readonly #calls = new Map<string, number>();
  readonly #ticks = new Map<Process, number>();
  /** Whether the code that last began a run was the newer one. */
  readonly #versions = new Map<string, boolean>();
  #processes = 0;
  #tokens = 0;
  #failure: unknown = null;
  /** The state that was checked last. */
  #checked: Snapshot | null = null;
  /** Whether faults are over, so that what is on its way arrives. */
  #isHealed = false;

  constructor(scenario: Scenario, database: Database) {
    this.#scenario = scenario;
    this.#database = database;
    this.#world = new World(scenario.seed, database.clock);
    const now = (): number => this.#world.now;
    this.#checker = new Checker(now);
    this.#witness = new Witness(this.#checker, now, () => this.#world.turn);
  }

  get #snapshot(): () => Snapshot & Posted {
    return () => this.#database.snapshot();
  }

  note(line: string): void {
    this.log.push(`${this.#world.elapsedMs} ${line}`);
  }

  count(what: string): void {
    this.#sometimes.set(what, (this.#sometimes.get(what) ?? 0) + 1);
  }

  async run(): Promise<Report> {
    const scenario = this.#scenario;
    const world = this.#world;
    for (let n = 0; n < scenario.processes; n++) this.#startProcess();
    let clientIsDone = false;
    this.#actAsClient().then(
      () => {
        clientIsDone = true;
      },
      (error: unknown) => {
        this.#failure ??= error;
      },
    );
    const isOver = (): boolean => {
      if (this.#failure !== null) return true;
      if (!clientIsDone) return false;
      return !this.#checker.hasLiveRuns;
    };
    const untilMs = world.now + END_MS;
    do {
      await world.run(untilMs, isOver);
      this.#isHealed = true;
      const settleMs = scenario.hooks ? SETTLE_HOOKS_MS : SETTLE_MS;
      await world.run(world.now + settleMs, () => this.#failure !== null || this.#isIdle());
      // A child that its parent did not wait for may have come last.
    } while (this.#failure === null && this.#checker.hasLiveRuns && world.now < untilMs);
    if (this.#failure !== null) throw this.#failure;
    const end = this.#snapshot();
    const alive = end.instances.filter(({ status }) => status === "live");
    if (alive.length > 0 || !clientIsDone) {
      const stuck = JSON.stringify(end.tickets);
      throw new Violation(
        `not over after ${END_MS} ms: ${alive.map(({ id }) => id).join()} ${stuck}`,
      );
    }
    for (const id of this.#created) {
      const rows = end.instances.filter((row) => row.id === id);
      if (rows.length !== 1)
        throw new Violation(`${id} was created, and exists ${rows.length} times`);
    }
    if (!this.#isIdle()) {
      const busy = [...this.#runners].map(
        ([{ name, isFrozen }, { isBusy, runs }]) =>
          `${name}: frozen ${isFrozen}, busy ${isBusy}, runs ${runs.map(({ id }) => id).join()}`,
      );
      throw new Violation(`all is over, and a runner is still busy: ${busy.join("; ")}`);
    }
    this.#checker.end(end, this.#ledger);
    checkRecords(end, this.#database.attempts());
    const { told, again } = this.#outbox.end();
    if (told > 0) this.count("hooks told");
    if (again > 0) this.count("hooks told again");
    const outcomes = this.#checkOutcomes(end);
    this.#countCloseCalls(end);
    const hash = createHash("sha256").update(this.log.join("\n")).digest("hex");
    return { hash, sometimes: this.#sometimes, outcomes, log: this.log };
  }

  /**
   * Returns whether nobody holds anything, nobody waits for a turn to end, and no hook has to be told
   * anything.
   */
  #isIdle(): boolean {
    if (this.#scenario.hooks && this.#snapshot().outbox.length > 0) return false;
    return [...this.#runners].every(([proc, { isBusy }]) => !isBusy && !this.#ticks.get(proc));
  }

  #countCloseCalls({ steps, events }: Snapshot): void {
    for (const { iid, run_no, consumed_by, created_at } of events) {
      const step = steps.find(
        (row) => row.iid === iid && row.run_no === run_no && row.ord === consumed_by,
      );
      if (step?.wake_at != null && step.wake_at - created_at <= 1) {
        this.count("event beats timeout by one tick");
      }
    }
  }

  #checkOutcomes({ instances }: Snapshot): string[] {
    return instances.map(({ id, status, output, error }) => {
      const [, n] = /^p(\d+)$/.exec(id) ?? [];
      const program = this.#scenario.programs[Number(n)];
      const ending =
        status === "errored"
          ? `error ${messageOf(decodeError(error ?? "null"))}`
          : `${status} ${output}`;
      if (ending.includes("hurried")) this.count("race decided by a non-step await");
      if (program === undefined || status === "terminated") return `${id} ${ending}`;
      const expected = outcomesOf(program, this.#mayHaveUsedUpAttempts());
      // Whether a run may have crashed was checked when it was said to have done so.
      if (expected === null || ending === "error RunCrashedError") {
        return `${id} ${ending}`;
      }
      const isExpected =
        status === "complete"
          ? expected.values.has(normal(output))
          : expected.errors.has(messageOf(decodeError(error ?? "null")));
      if (isExpected) return `${id} ${ending}`;
      throw new Violation(
        `${id} ended as ${ending}; possible: ${[...expected.values, ...expected.errors].join(" | ")}\n` +
          JSON.stringify(program),
      );
    });
  }

  #mayHaveUsedUpAttempts(): boolean {
    const causes = ["crash", "takeover", "paused for its dead owner", "body given back"];
    return causes.some((what) => this.#sometimes.has(what));
  }

  // Processes

  #startProcess(): void {
    const world = this.#world;
    const skew = world.dice.between(-this.#scenario.skewMs, this.#scenario.skewMs);
    const proc = new Process(world, `r${++this.#processes}`, skew);
    const isNewer = this.#scenario.changesCode && world.dice.chance(0.5);
    const { runner, workflows } = assemble(
      {
        workflows: { PROGRAM: { name: "program", workflow: this.#workflow(proc, isNewer) } },
        store: faultyStore(this.#database.store, proc, this),
        logger: this.#logger(proc),
        repeatedStepNames: this.#scenario.repeatedStepNames,
        ...(this.#hasHooks(proc) ? { hooks: this.#hooks(proc) } : {}),
      },
      {
        runtime: proc.runtime,
        timing: { stallMs: 1_000, reportStuckMs: 60_000, holdMs: 500 },
        runner: {
          ...defaultRunnerOptions,
          leaseMs: LEASE_MS,
          live: { runs: this.#scenario.liveRuns, bytes: 1e9 },
          batch: {
            parts: this.#scenario.batchParts,
            bytes: 1e6,
            half: world.dice.upTo(1) === 0 ? Infinity : 1,
          },
        },
      },
    );
    this.#runners.set(proc, runner);
    this.#senders.set(proc, async (id, type) => {
      await (await workflows.PROGRAM.get(id)).sendEvent({ type });
    });
    let isDue = false;
    const look = (): void => {
      if (isDue) return;
      isDue = true;
      proc.after(world.dice.upTo(2), () => {
        isDue = false;
        const started = world.dice.chance(0.2)
          ? this.#tick(proc, runner, { maxInstances: 2, maxSteps: 3 })
          : runner.start();
        started.catch((error: unknown) => this.note(`${proc.name} look failed ${String(error)}`));
        if (world.dice.chance(0.1)) this.#tick(proc, runner).catch(() => {});
      });
    };
    runner.serve(look);
    const poll = (): void => {
      look();
      proc.after(world.dice.between(50, 1_000), poll);
    };
    poll();
  }

  async #send(
    handle: (id: string) => Promise<{ sendEvent(event: { type: string }): Promise<void> }>,
    id: string,
    type: string,
    inRunner: boolean,
  ): Promise<{ readonly by: string; readonly sent: string }> {
    const proc = inRunner ? this.#processFor(id) : null;
    const send = proc === null ? undefined : this.#senders.get(proc);
    const sent =
      send === undefined
        ? await answered(async () => (await handle(id)).sendEvent({ type }))
        : await answeredWithin(this.#world, () => send(id, type));
    return { by: proc?.name ?? "client", sent };
  }

  /** Returns a process that has the run in memory, if there is one. */
  #processFor(id: string): Process | null {
    const alive = [...this.#runners];
    const isHere = ([, runner]: [Process, Runner]): boolean => {
      const room = runner.starts.reserveFor({ workflow: "program", id });
      room?.release();
      return room !== null;
    };
    return (alive.find(isHere) ?? alive[0])?.[0] ?? null;
  }

  /** Runs a tick. The ticks of processes that go on must end. */
  #tick(proc: Process, runner: Runner, options: TickOptions = {}): Promise<unknown> {
    this.#ticks.set(proc, 1 + (this.#ticks.get(proc) ?? 0));
    return runner.tick(options).finally(() => {
      this.#ticks.set(proc, (this.#ticks.get(proc) ?? 0) - 1);
    });
  }

  #logger(proc: Process): Logger {
    const log = (event: string, fields: Record<string, unknown> = {}): void => {
      const about = event.startsWith("hook") ? fields["error"] : (fields["id"] ?? fields["error"]);
      this.note(`${proc.name} ${event} ${JSON.stringify(about ?? "")}`);
      this.count(event);
      if (event === "step.missing") this.#checker.diverged(String(fields["id"]));
      if (event !== "invariant.broken") return;
      this.#guard(() => {
        throw new Error(`an invariant is broken: ${JSON.stringify(fields)}`);
      });
    };
    return { debug: log, info: log, warn: log, error: log };
  }

  crash(proc: Process): void {
    const runner = this.#runners.get(proc);
    if (runner === undefined || !proc.isAlive) return;
    this.note(`${proc.name} crashes`);
    this.count("crash");
    proc.isAlive = false;
    runner.crash();
    this.#runners.delete(proc);
    this.#world.after(this.#world.dice.between(1, 2_000), () => this.#startProcess());
  }

  #stop(proc: Process, runner: Runner): void {
    this.note(`${proc.name} stops`);
    this.#runners.delete(proc);
    this.#startProcess();
    runner.stop(this.#world.dice.pick([0, 100, 5_000])).then(
      () => {
        this.note(`${proc.name} stopped`);
        proc.isAlive = false;
      },
      (error: unknown) => {
        this.note(`${proc.name} stop failed ${String(error)}`);
        proc.isAlive = false;
        runner.crash();
      },
    );
  }

  // The workflow

  /** Returns the workflow. Newer code has one more step at its end. */
  #workflow(proc: Process, isNewer: boolean) {
    const noteVersion = this.#noteVersion.bind(this);
    const programOf = (n: number): Node => this.#scenario.programs[n] ?? childProgram;
    const body = this.#body.bind(this);
    const witness = this.#witness;
    const guard = this.#guard.bind(this);
    return class Program extends WorkflowEntrypoint<unknown, { n: number }> {
      async run(event: WorkflowEvent<{ n: number }>, step: WorkflowStep): Promise<unknown> {
        const { n } = event.payload;
        const { instanceId: id, runNumber } = event;
        let life = newIncarnation(proc.name, id, runNumber);
        guard(() => {
          life = witness.begins(proc.name, id, runNumber);
        });
        const create = (params: object, childId?: string) =>
          this.workflows["PROGRAM"]?.create({ ...(childId && { id: childId }), params });
        noteVersion(`${id}#${runNumber}`, isNewer);
        const outside: Outside = {
          sleep: (ms) => proc.runtime.scheduler.sleep(ms),
          called: (name, isDo) => witness.calls(life, name, isDo),
          saw: (name, isNested) => guard(() => witness.sees(life, name, isNested)),
          body: (node, context, known, first) => body(proc, life, node, context, known, first),
          child: (name) => create({ n: -1, of: `${id}#${runNumber} ${name}` }) as Promise<unknown>,
          spawn: async (name) => {
            const child = `${name}-of-${id}-${runNumber}`;
            witness.spawns(life, child);
            // Nobody else tries again what is not a step.
            for (;;) {
              const made = await answered(async () => void (await create({ n: -1 }, child)));
              if (made !== "STORE_UNAVAILABLE") return;
              await proc.runtime.scheduler.sleep(50);
            }
          },
        };
        const result = await execute(programOf(n), step, outside);
        if (isNewer) await execute(addedStep, step, outside);
        return result;
      }
    };
  }

  /** Of several processes one has no hooks, and writes rows for the others. */
  #hasHooks({ name }: Process): boolean {
    const { hooks, processes } = this.#scenario;
    return hooks === true && (processes === 1 || name !== "r2");
  }

  /** Hooks that take their time, fail, or never come back, until all is healed. */
  #hooks(proc: Process): Hooks {
    const { dice } = this.#world;
    const tell = async (told: Told): Promise<void> => {
      // Their ids are left out, because some are random.
      this.note(`${proc.name} is told ${told.reason} ${told.instanceId}#${told.runNumber}`);
      this.#guard(() => this.#outbox.calls(told));
      const isFaulty = !this.#isHealed && this.#world.elapsedMs < this.#scenario.healAtMs;
      if (isFaulty && dice.chance(0.03)) await new Promise(() => {});
      await proc.runtime.scheduler.sleep(dice.upTo(200));
      if (isFaulty && dice.chance(0.2)) throw new Error("not now");
      this.#outbox.done(told.id);
    };
    return {
      onWorkflowEnqueued: ({ id, instanceId, runNumber, reason }) =>
        tell({ id, instanceId, runNumber, reason }),
      onInstanceFinished: ({ id, instanceId, runNumber, status }) =>
        tell({ id, instanceId, runNumber, reason: status }),
    };
  }

  #noteVersion(run: string, isNewer: boolean): void {
    const before = this.#versions.get(run);
    if (before !== undefined && before !== isNewer) this.count("code changed under a run");
    this.#versions.set(run, isNewer);
  }

  async #body(
    proc: Process,
    life: Incarnation,
    node: DoNode,
    context: StepContext,
    known: number,
    first: () => Promise<void>,
  ): Promise<unknown> {
    const world = this.#world;
    const attempt = context.attempt;
    const maxAttempts = node.limit === null ? Infinity : node.limit + 1;
    const run = `${life.id}#${life.runNumber}`;
    this.note(`${proc.name} enters ${run} ${node.name} ${attempt}`);
    const entry = this.#ledger.enter({
      run,
      step: node.name,
      attempt,
      maxAttempts,
      process: proc.name,
      enteredAt: world.now,
    });
    this.#guard(() => {
      this.#checker.entered(life.id, life.runNumber, node.name);
      this.#witness.enters(life, entry, known, context.signal);
    });
    context.signal.addEventListener("abort", () => {
      const reason = (context.signal.reason as Error).message;
      if (entry.token !== null || entry.failedAt !== null) return;
      if (reason === "the runner is stopping") {
        entry.wasGivenBack = true;
        this.count("body given back");
      }
    });
    await first().catch((error: unknown) => {
      life.running.delete(node.name);
      entry.failedAt = world.now;
      throw error;
    });
    if (node.takesMs > 0) await proc.runtime.scheduler.sleep(node.takesMs);
    this.#guard(() => this.#witness.leaves(life, node.name));
    if (node.kills.includes(attempt)) {
      this.count("body kills its process");
      this.crash(proc);
      return new Promise(() => {});
    }
    if (attempt <= node.failures) {
      entry.failedAt = world.now;
      throw new Error(`failed ${node.name}`);
    }
    entry.token = `t${++this.#tokens}`;
    return { step: node.name, token: entry.token };
  }

  #guard(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#failure ??= error;
    }
  }

  // Faults

  faultOf(proc: Process, verb: Verb): Fault | null {
    const key = `${proc.name} ${verb}`;
    const count = 1 + (this.#calls.get(key) ?? 0);
    this.#calls.set(key, count);
    if (this.#isHealed || this.#world.elapsedMs >= this.#scenario.healAtMs) return null;
    const fault = this.#scenario.faultOf({ name: `${key} ${count}`, process: proc.name, verb });
    if (fault !== null) {
      this.count(`${fault} ${verb}`);
      this.count(fault);
      this.note(`${proc.name} ${verb} will meet ${fault}`);
    }
    return fault;
  }

  sending(proc: Process, verb: Verb, args: readonly unknown[]): void {
    this.#guard(() => {
      if (verb === "register") this.#witness.registers(proc.name, args[0] as string);
      if (verb === "create") {
        const ids = (args[0] as NewInstance[]).map(({ id }) => id);
        this.#witness.creates(proc.name, ids);
      }
      if (verb !== "commit") return;
      for (const part of args[0] as Part[]) this.#witness.sends(proc.name, part);
    });
  }

  heard(_proc: Process, verb: Verb, args: readonly unknown[], answer: unknown): void {
    if (verb !== "commit") return;
    for (const [n, part] of (args[0] as Part[]).entries()) {
      this.#witness.hears(part, (answer as PartAnswer[])[n] as PartAnswer);
    }
  }

  async interfere(verb: "pause" | "restart"): Promise<void> {
    const id = this.#world.dice.pick([...this.#created]);
    if (id === undefined || this.#checker.ticketOf(id) === undefined) return;
    const target = { workflow: "program", id };
    const { store } = this.#database;
    const { kind } = await store.control(
      target,
      verb === "pause" ? { command: verb } : { command: verb, operationId: `op${++this.#tokens}` },
    );
    this.note(`someone has a ${verb} for ${id}: ${kind}`);
    this.#guard(() => this.#checkState(this.#snapshot()));
  }

  #checkState(snapshot: Snapshot & Posted): void {
    if (snapshot === this.#checked) return;
    this.#checked = snapshot;
    this.#checker.state(snapshot);
    this.#outbox.state(snapshot);
  }

  isOut(): boolean {
    const at = this.#world.elapsedMs;
    const isOut = this.#scenario.outages.some(({ fromMs, toMs }) => at >= fromMs && at < toMs);
    if (isOut) this.count("outage");
    return isOut;
  }

  applied({ process: proc, verb, args, answer, fault }: Applied): void {
    if (verb === "commit") this.#noteParts(proc, args[0] as Part[], answer as PartAnswer[], fault);
    else if (verb === "claimHooks")
      this.note(`${proc.name} claimHooks ${(answer as unknown[]).length}`);
    else if (!["nextDueInMs", "unknownLanes", "unknownHooks"].includes(verb))
      this.note(`${proc.name} ${verb} ${brief(answer)}`);
    if (verb === "sendEvent") {
      const sent = answer as SendEventAnswer;
      if (sent.kind === "accepted" && sent.claimed !== null) {
        this.count("event leases its run");
        if (fault === "replyLost") this.count("event leases its run, and the reply was lost");
      }
    }
    if (verb === "reopen" && (answer as unknown[]).length > 0) this.count("parked run reopened");
    if (verb === "adopt") {
      const claimed = answer as Claimed[];
      if (claimed.length > 0) this.count("claim adopted");
      this.#noteClaimed(claimed, "adopted");
    }
    if (verb === "claim") {
      const claim = answer as ClaimAnswer;
      this.#noteClaimed(claim.kind === "ok" ? claim.claimed : [], fault);
    }
    if (READS.has(verb)) return;
    const snapshot = this.#snapshot();
    for (const iid of this.#checker.pausedForTheDead(snapshot)) {
      this.count("paused for its dead owner");
      this.#witness.tookOver(iid);
    }
    this.#guard(() => this.#checkState(snapshot));
  }

  #noteClaimed(claimed: readonly Claimed[], fault: Fault | "adopted" | null): void {
    for (const { iid, id, runNumber, takenOver } of claimed) {
      if (!takenOver) continue;
      if (fault !== "adopted") this.#witness.tookOver(iid);
      this.count("takeover");
      if (this.#hasOpenBody(`${id}#${runNumber}`)) this.count("takeover during a body");
    }
    if (claimed.length > 0 && fault === "replyLost") this.count("claim whose reply was lost");
  }

  /**
   * Returns whether a live process has a body of the run. It will come back, and find that it is no longer
   * wanted.
   */
  #hasOpenBody(run: string): boolean {
    const alive = new Set([...this.#runners.keys()].map(({ name }) => name));
    return this.#ledger.entries.some(
      (entry) =>
        entry.run === run &&
        entry.token === null &&
        entry.failedAt === null &&
        alive.has(entry.process),
    );
  }

  #noteParts(
    proc: Process,
    parts: readonly Part[],
    answers: readonly PartAnswer[],
    fault: Fault | null,
  ): void {
    for (const [n, part] of parts.entries()) {
      const answer = answers[n] as PartAnswer;
      const how = answer.kind === "ok" ? answer.state : answer.kind;
      const steps = part.steps.map(({ name, status, attempts }) => `${name}:${status}:${attempts}`);
      this.note(
        `${proc.name} commit ${part.claimNumber}.${part.partNumber} ${part.next.kind} [${steps.join(" ")}] ${how}`,
      );
      if (answer.kind === "lost" && part.steps.some(({ seq }) => seq !== null)) {
        this.count("late result fenced");
      }
      // After a refused park the run goes on.
      if (answer.kind === "ok" && !(part.next.kind === "park" && how === "leased")) {
        const isCrashed = part.next.kind === "fail" && part.next.error.includes("RunCrashedError");
        this.#guard(() => this.#witness.took(part, isCrashed, defaultRunnerOptions.maxTakeovers));
      }
      const finishes = part.next.kind === "complete" || part.next.kind === "fail";
      if (finishes && fault === "replyLost") this.count("final commit whose reply was lost");
      if (part.next.kind === "park" && how === "leased") this.count("park refused by an event");
    }
    if (parts.length === this.#scenario.batchParts) this.count("batch split");
  }

  // People

  async #actAsClient(): Promise<void> {
    const world = this.#world;
    const proc = new Process(world, "client", 0);
    const { workflows } = assemble(
      {
        workflows: { PROGRAM: { name: "program", workflow: this.#workflow(proc, false) } },
        store: faultyStore(this.#database.store, proc, this),
      },
      {
        runtime: proc.runtime,
        timing: { stallMs: 1_000, reportStuckMs: 60_000, holdMs: 500 },
        runner: { ...defaultRunnerOptions, leaseMs: LEASE_MS },
      },
    );
    const ids: string[] = [];
    for (const [n, program] of this.#scenario.programs.entries()) {
      const id = `p${n}`;
      ids.push(id);
      this.#checker.loose(id, looseBranches(program));
      this.#checker.behind(id, stepsBehindForeignAwaits(program));
      await untilAnswered(world, async () => {
        await workflows.PROGRAM.create({ id, params: { n } }).catch(ifDuplicate);
        this.#created.add(id);
      });
    }
    const handle = (id: string) => workflows.PROGRAM.get(id);
    await this.#scenario.client({
      world,
      ids,
      send: async (id, type, inRunner = false) => {
        const { by, sent } = await this.#send(handle, id, type, inRunner);
        this.note(`${by} sends ${type} to ${id}: ${sent}`);
      },
      sendAtDeadline: async (wanted, inRunner = false) => {
        const { steps, instances } = this.#snapshot();
        const wait = steps.find(
          ({ wait_key, seq }) =>
            wait_key !== null && seq === null && wait_key === (wanted ?? wait_key),
        );
        const row = instances.find(({ iid }) => iid === wait?.iid);
        if (wait === undefined || row === undefined) return;
        // A request takes up to three ms, and the first one looks the instance up.
        await world.sleep((wait.wake_at ?? 0) - world.now - world.dice.between(3, 6));
        const type = wait.wait_key ?? "";
        const { by, sent } = await this.#send(handle, row.id, type, inRunner);
        this.note(`${by} sends ${type} to ${row.id} at its deadline: ${sent}`);
      },
      control: async (id, verb) => {
        const done = await answered(async () => (await handle(id))[verb]());
        this.note(`client ${verb} ${id}: ${done}`);
        if (done === "ok") this.count(`${verb} acked`);
      },
      stopARunner: () => {
        const [first] = this.#runners;
        if (first !== undefined) this.#stop(...first);
      },
    });
    // A person who paused something resumes it, because nothing may stay paused for ever.
    for (const id of ids) {
      await untilAnswered(world, async () => (await handle(id)).resume());
    }
    const resumeLater = async (): Promise<void> => {
      world.after(RESUME_MS, () => void resumeLater().catch(() => {}));
      for (const { tid, state } of this.#snapshot().tickets) {
        const row = this.#snapshot().instances.find(({ iid }) => iid === tid);
        if (state === "paused" && row !== undefined) await (await handle(row.id)).resume();
      }
    };
    world.after(this.#scenario.healAtMs, () => void resumeLater().catch(() => {}));
  }
}

const childProgram: DoNode = {
  kind: "do",
  name: "grow",
  limit: null,
  delayMs: 10,
  failures: 0,
  takesMs: 0,
  kills: [],
};

const addedStep: DoNode = { ...childProgram, name: "added" };

async function answered(work: () => Promise<void>): Promise<string> {
  try {
    await work();
    return "ok";
  } catch (error) {
    return String((error as { code?: string }).code ?? error);
  }
}

/** Waits only for a while, because a process that crashes answers nothing. */
function answeredWithin(world: World, work: () => Promise<void>): Promise<string> {
  const silence = world.sleep(ANSWER_MS).then(() => "no answer");
  return Promise.race([answered(work), silence]);
}

async function untilAnswered(world: World, work: () => Promise<void>): Promise<void> {
  for (;;) {
    const answer = await answered(work);
    if (answer !== "STORE_UNAVAILABLE") return;
    await world.sleep(50);
  }
}

function ifDuplicate(error: { code?: string }): void {
  if (error.code !== "INSTANCE_ID_ALREADY_EXISTS") throw error as unknown as Error;
}

/** Shortens an answer for the log. */
function brief(answer: unknown): string {
  const text = JSON.stringify(answer) ?? "";
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
