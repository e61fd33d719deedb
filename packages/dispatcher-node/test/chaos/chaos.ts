import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { decodeError } from "../../../pawl/src/model/error-codec.js";
import {
  Checker,
  must,
  Violation,
  type InstanceRow,
  type Snapshot,
} from "../../../pawl/test/sim/checker.js";
import type { Ledger } from "../../../pawl/test/sim/ledger.js";
import {
  looseBranches,
  messageOf,
  normal,
  outcomesOf,
  type Node,
} from "../../../pawl/test/sim/program.js";
import { Dice } from "../../../pawl/test/sim/random.js";
import { temporaryFolder } from "../../../pawl/test/support/folder.js";
import { inScope, type Scope } from "../../../pawl/test/support/scope.js";
import type { Kind } from "../../../pawl/test/support/servers.js";
import { LedgerFile, readLedger } from "./ledger-file.js";
import { ClientLog, makeLoad, resumeAll } from "./load.js";
import { somewhere, type Place } from "./place.js";
import { Process } from "./processes.js";

const RUNNERS = 3;
const LEASE_MS = 1_500;
const LOOK_EVERY_MS = 500;
/** Longer than any program takes from its start, with every attempt and wait. */
const HEAL_MS = 120_000;

export type ChaosReport = {
  readonly seed: number;
  readonly instances: number;
  readonly steps: number;
  readonly bodies: number;
  readonly bodiesRepeated: number;
  readonly lost: number;
  /** The events of processes, server and lines, and the answers that people heard. */
  readonly happened: Readonly<Record<string, number>>;
  readonly healedInMs: number;
};

type Options = {
  readonly kind: Kind | "sqlite";
  readonly seconds: number;
  readonly seed: number;
  /** The compiled worker. */
  readonly file: string;
};

/**
 * Plays with real processes, a real server and a plan to break them all. In the end everything must be as it
 * was said.
 */
export function chaos(options: Options): Promise<ChaosReport> {
  return inScope(async (scope) => {
    const dice = new Dice(options.seed);
    const place = await somewhere(scope, options.kind);
    const ledgerPath = ledgerIn(scope);
    const start = (name: string, role: "api" | "runner"): Process =>
      new Process(scope, options.file, {
        name,
        role,
        place: place.store,
        ledger: ledgerPath,
        leaseMs: LEASE_MS,
      });
    const api = start("api", "api");
    const runners = Array.from({ length: RUNNERS }, (_, n) => start(`runner-${n}`, "runner"));
    await Promise.all([api, ...runners].map((each) => each.start()));

    const log = new ClientLog();
    const happened = new Map<string, number>();
    const checker = new Checker(() => Date.now());
    let isOver = false;
    const until = performance.now() + options.seconds * 1_000;
    const isLate = (): boolean => isOver || performance.now() >= until;
    const whole = Promise.all([
      makeLoad(dice.fork(), () => api.url, log, isLate),
      disturb(dice.fork(), place, api, runners, happened, isLate),
      watch(place, checker, isLate),
    ]);
    try {
      await whole;
    } finally {
      isOver = true;
    }

    for (const each of [api, ...runners]) each.thaw();
    const healedFrom = performance.now();
    const last = await healed(place, checker, api);
    const healedInMs = Math.round(performance.now() - healedFrom);
    const ledger = readLedger(ledgerPath);
    for (const each of runners) each.diverged.forEach((id) => checker.diverged(id));
    judge(last, checker, ledger, log);
    const collapses = [api, ...runners].flatMap((each) => each.collapses);
    must(collapses.length === 0, () => collapses.join("\n"));

    return {
      seed: options.seed,
      instances: last.instances.length,
      steps: last.steps.length,
      bodies: ledger.entries.length,
      bodiesRepeated: repeated(ledger),
      lost: 0,
      happened: Object.fromEntries([...happened, ...log.refusals]),
      healedInMs,
    };
  });
}

function ledgerIn(scope: Scope): string {
  const file = path.join(temporaryFolder(scope), "ledger");
  new LedgerFile(file).close();
  return file;
}

/** Causes one accident after the other, by the dice. Each may hit what the last one left broken. */
async function disturb(
  dice: Dice,
  place: Place,
  api: Process,
  runners: readonly Process[],
  happened: Map<string, number>,
  isOver: () => boolean,
): Promise<void> {
  const frozen = new Set<Promise<unknown>>();
  const freeze = (victim: Process, ms: number): void => {
    victim.freeze();
    const thawed = sleep(ms).then(() => victim.thaw());
    frozen.add(thawed);
  };
  const accidents: Record<string, () => unknown> = {
    "runners killed": () => dice.pick(runners).kill(),
    "runners frozen": () => freeze(dice.pick(runners), dice.between(100, 3 * LEASE_MS)),
    "runners asked to end": () => dice.pick(runners).terminate(),
    "API killed": () => api.kill(),
    ...Object.fromEntries(
      Object.entries(place.accidents).map(([what, cause]) => [what, () => cause(dice)]),
    ),
  };
  while (!isOver()) {
    await sleep(dice.between(200, 1_200));
    const what = dice.pick(Object.keys(accidents));
    happened.set(what, 1 + (happened.get(what) ?? 0));
    // A server that is starting cannot be asked for anything.
    await Promise.resolve(accidents[what]?.()).catch(() => {});
  }
  await Promise.all(frozen);
}

/** Checks committed states while things happen. A server that is away is looked at later. */
async function watch(place: Place, checker: Checker, isOver: () => boolean): Promise<void> {
  while (!isOver()) {
    const snapshot = await place.snapshot().catch(() => null);
    if (snapshot !== null) checker.state(snapshot);
    await sleep(LOOK_EVERY_MS);
  }
}

type Last = Awaited<ReturnType<Place["snapshot"]>>;

/** Waits, with nothing broken any more, until everything has come to an end. Paused instances are resumed. */
async function healed(place: Place, checker: Checker, api: Process): Promise<Last> {
  const deadline = performance.now() + HEAL_MS;
  for (;;) {
    const snapshot = await place.snapshot();
    checker.state(snapshot);
    if (snapshot.tickets.length === 0) return snapshot;
    must(performance.now() < deadline, () => stuck(snapshot));
    const ids = new Map(snapshot.instances.map(({ iid, id }) => [iid, id]));
    const paused = snapshot.tickets.filter(
      ({ state, pause_requested }) => state === "paused" || pause_requested === 1,
    );
    await resumeAll(
      () => api.url,
      paused.map(({ tid }) => ids.get(tid) ?? ""),
    );
    await sleep(LOOK_EVERY_MS);
  }
}

function stuck({ tickets, instances, steps }: Snapshot): string {
  const [ticket] = tickets;
  const instance = instances.find(({ iid }) => iid === ticket?.tid);
  const own = steps.filter(({ iid }) => iid === ticket?.tid);
  return `${tickets.length} runs did not end, such as ${JSON.stringify({ instance, ticket, own })}`;
}

/** Checks that the database, the ledger of the bodies and what people were told tell one story. */
function judge(last: Last, checker: Checker, ledger: Ledger, log: ClientLog): void {
  for (const [id, program] of log.unsure) checker.loose(id, looseBranches(program));
  try {
    checker.end(last, ledger);
  } catch (error) {
    throw new Violation(`${(error as Error).message}\n${evidence(error, last, ledger, log)}`);
  }
  const byId = new Map<string, InstanceRow>();
  for (const row of last.instances) {
    must(!byId.has(row.id), () => `there are two of ${row.id}`);
    byId.set(row.id, row);
  }
  for (const [id, program] of log.unsure) {
    const row = byId.get(id);
    must(row !== undefined || !log.created.has(id), () => `${id} was acknowledged, and is lost`);
    if (row === undefined) continue;
    if (log.terminated.has(id) && !log.restarted.has(id)) {
      must(row.status === "terminated", () => `${id} was terminated, and is ${row.status}`);
    }
    if (row.status !== "terminated") mustBePossible(row, program);
  }
  const eventIds = new Map<string, number>();
  for (const id of last.eventIds) eventIds.set(id, 1 + (eventIds.get(id) ?? 0));
  for (const sent of log.sent) {
    const [id = "", eventId = ""] = sent.split(" ");
    // Events that were not yet moved into a run that ended go with it, and a new run's events are its own.
    if (log.restarted.has(id)) continue;
    must(eventIds.get(eventId) === 1, () => `${sent} is there ${eventIds.get(eventId) ?? 0} times`);
  }
}

/** Returns all that is known of the instance that a violation names, because chance does not come again. */
function evidence(error: unknown, last: Last, ledger: Ledger, log: ClientLog): string {
  const [id = ""] = /order-\d+/.exec((error as Error).message) ?? [];
  const iid = last.instances.find((row) => row.id === id)?.iid;
  return JSON.stringify({
    program: log.unsure.get(id),
    steps: last.steps.filter((row) => row.iid === iid),
    bodies: ledger.entries.filter(({ run }) => run.startsWith(`${id}#`)),
  });
}

function mustBePossible({ id, status, output, error }: InstanceRow, program: Node) {
  const possible = outcomesOf(program, true);
  const failure = status === "errored" ? messageOf(decodeError(error ?? "null")) : null;
  if (possible === null || failure === "RunCrashedError") return;
  const isPossible =
    failure === null ? possible.values.has(normal(output)) : possible.errors.has(failure);
  must(isPossible, () => `${id} ended with ${failure ?? output}: ${JSON.stringify(program)}`);
}

/**
 * Counts bodies that ran again though none before had failed. The promise is at least once, and this is its
 * price.
 */
function repeated({ entries }: Ledger): number {
  const whole = new Map<string, number>();
  for (const { run, step, failedAt } of entries) {
    if (failedAt === null) whole.set(`${run} ${step}`, 1 + (whole.get(`${run} ${step}`) ?? 0));
  }
  return entries.filter(({ failedAt }) => failedAt === null).length - whole.size;
}
