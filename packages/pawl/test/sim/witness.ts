import type { Next, Part, PartAnswer } from "../../src/store/part.js";
import { must, type Checker } from "./checker.js";
import type { Entry } from "./ledger.js";

/** One life of a run's code: what it called and saw since its start in some process. */
export type Incarnation = {
  readonly id: string;
  readonly runNumber: number;
  readonly process: string;
  /**
   * The steps whose results the code was given, in order. `unbegun` are the `do` steps that it called and
   * that have not begun here.
   */
  readonly seen: string[];
  readonly unbegun: Set<string>;
  /** The number of the last settlement seen, as far as it is durable. */
  lastSeq: number;
  /** The bodies that have begun, with their signals. */
  readonly running: Map<string, Signal>;
  /** The steps that had ended when the code began. Another result that the code is given is news. */
  readonly settled: ReadonlySet<string>;
  hasNews: boolean;
  /** Whether nothing that tells of a takeover was forgotten before the code began. */
  readonly isTakeover: boolean;
  /** The turn of the world in which the code began, or was last given a result: as long as it lasts, it is in stride. */
  strideTurn: number;
  /** The `do` steps that the code has called. */
  readonly calls: Map<string, CalledDo>;
};

type CalledDo = {
  readonly isInStride: boolean;
  /** Whether the engine cannot know that an earlier owner may have begun the step: the exception of decision D58. */
  readonly isTooLate: boolean;
};

type Begun = { readonly life: Incarnation; readonly entry: Entry };

type Signal = { readonly aborted: boolean };

/** The parts that a process sent under one claim. */
type Talk = {
  readonly process: string;
  partNumber: number;
  text: string;
  fate: "unknown" | "ok" | "lost";
};

/** How long after a control operation the owner must have heard of it, whatever got lost. */
const MUST_KNOW_MS = 3_000;

/** Watches the processes from inside: what their code saw and did, and what they said to the store. */
export class Witness {
  readonly #checker: Checker;
  readonly #now: () => number;
  readonly #turn: () => number;
  readonly #latest = new Map<string, Incarnation>();
  readonly #begun = new Set<string>();
  readonly #talks = new Map<string, Talk>();
  readonly #finished = new Map<string, string>();
  /** The process that registered each runner. */
  readonly #processOf = new Map<string, string>();
  readonly #takeovers = new Map<string, number>();
  /** The bodies that have begun, by run and step. */
  readonly #entries = new Map<string, Begun[]>();
  /** Children that are being created outside of steps, with how much their parents had seen. */
  readonly #spawning = new Map<string, (readonly [Incarnation, number])[]>();

  constructor(checker: Checker, now: () => number, turn: () => number) {
    this.#checker = checker;
    this.#now = now;
    this.#turn = turn;
  }

  // Code

  /** The code of a run begins, which may happen once for each claim. */
  begins(process: string, id: string, runNumber: number): Incarnation {
    const ticket = this.#checker.ticketOf(id);
    const incarnation: Incarnation = {
      ...newIncarnation(process, id, runNumber),
      settled: this.#checker.settledOf(id, runNumber),
      isTakeover: this.#takeovers.has(ticket?.tid ?? ""),
      strideTurn: this.#turn(),
    };
    this.#latest.set(`${process}/${id}`, incarnation);
    if (ticket !== undefined && this.#owns(incarnation)) {
      const claim = `${ticket.tid}/${ticket.claim_no}`;
      must(!this.#begun.has(claim), () => `the code of ${id} begins twice under one claim`);
      this.#begun.add(claim);
    }
    return incarnation;
  }

  /** The code calls a step. Returns how many settlements it has seen. */
  calls(incarnation: Incarnation, step: string, isDo: boolean): number {
    const { id, runNumber, seen, unbegun, calls, hasNews, isTakeover, strideTurn } = incarnation;
    if (!isDo) return seen.length;
    unbegun.add(step);
    // Code that runs in stride calls its steps at the same place in every replay. A step behind something else may come
    // after something new, or after the takeover was forgotten: because the run settled something, or gave its ticket up.
    const row = this.#checker.stepOf(id, runNumber, step);
    const isForgotten =
      row === undefined ? hasNews || !isTakeover : row.status === "waiting" && !isTakeover;
    calls.set(step, {
      isInStride: strideTurn === this.#turn(),
      isTooLate: isForgotten && this.#checker.isBehind(id, step),
    });
    return seen.length;
  }

  /** The code is given a result. Its process must own the run, and the order must be the one recorded. */
  sees(incarnation: Incarnation, step: string, isNested: boolean): void {
    const { id, runNumber, seen, unbegun, lastSeq } = incarnation;
    seen.push(step);
    unbegun.delete(step);
    incarnation.strideTurn = this.#turn();
    if (!incarnation.settled.has(step)) incarnation.hasNews = true;
    // A step within a body is called again whenever the body is.
    if (isNested || this.#checker.hasDiverged(id) || !this.#owns(incarnation)) return;
    const seq = this.#checker.stepOf(id, runNumber, step)?.seq ?? null;
    if (seq === null) return;
    must(seq > lastSeq, () => `${id} sees ${step}, number ${seq}, after number ${lastSeq}`);
    incarnation.lastSeq = seq;
  }

  /**
   * Returns whether the code goes on in the process that has the run's ticket, and was not given up there.
   */
  #owns(incarnation: Incarnation): boolean {
    const { id, runNumber, process } = incarnation;
    const ticket = this.#checker.ticketOf(id);
    const isOwner = this.#processOf.get(ticket?.owner ?? "") === process;
    const isLatest = this.#latest.get(`${process}/${id}`) === incarnation;
    return isOwner && isLatest && ticket?.run_no === runNumber;
  }

  /** A body begins. `known` settlements had been seen when its step was called. */
  enters(incarnation: Incarnation, entry: Entry, known: number, signal: Signal): void {
    const { id, runNumber, process } = incarnation;
    const { step } = entry;
    this.#mustBeCharged(incarnation, entry);
    incarnation.unbegun.delete(step);
    incarnation.running.set(step, signal);
    const what = `the body of ${id}#${runNumber} ${step}`;
    this.#mustBeDurable(incarnation, known, what);
    const newest = this.#latest.get(`${process}/${id}`);
    must(newest === incarnation, () => `${what} starts in code that was given up`);
    const leftAt = this.#checker.leftAt(id, runNumber);
    if (leftAt !== null) {
      must(
        this.#now() - leftAt <= MUST_KNOW_MS,
        () => `${what} starts long after the run was over`,
      );
      return;
    }
    const ticket = this.#checker.ticketOf(id);
    must(
      ticket?.state === "leased" && this.#processOf.get(ticket.owner ?? "") === process,
      () => `${what} starts in ${process} without a lease: ${JSON.stringify(ticket)}`,
    );
  }

  /**
   * Checks that every body of the step that has begun before counts, so that no attempt has the number of another. A
   * later owner need not know of a body that began in stride, without a row, if its own code called the step too late.
   */
  #mustBeCharged(incarnation: Incarnation, entry: Entry): void {
    const { run, step, attempt, maxAttempts } = entry;
    // Steps with infinite attempts need not be charged.
    if (maxAttempts === Infinity) return;
    const key = `${run} ${step}`;
    const before = this.#entries.get(key) ?? [];
    this.#entries.set(key, [...before, { life: incarnation, entry }]);
    for (const { life, entry: other } of before) {
      if (other.wasGivenBack || other.wasUnknowable || other.attempt < attempt) continue;
      const mayBeUnknown =
        life !== incarnation &&
        life.calls.get(step)?.isInStride === true &&
        incarnation.calls.get(step)?.isTooLate === true;
      must(mayBeUnknown, () => `attempt ${attempt} of ${key} begins after ${other.attempt}`);
      other.wasUnknowable = true;
    }
  }

  /** A body has ended. */
  leaves({ id, runNumber, process, running }: Incarnation, step: string): void {
    const isAborted = running.get(step)?.aborted === true;
    running.delete(step);
    const hasFinished = this.#finished.get(`${id}#${runNumber}`) === process;
    must(!hasFinished || isAborted, () => `${id} ended, and the signal of ${step} did not fire`);
  }

  spawns(incarnation: Incarnation, child: string): void {
    const lives = this.#spawning.get(child) ?? [];
    this.#spawning.set(child, [...lives, [incarnation, incarnation.seen.length]]);
  }

  #mustBeDurable(incarnation: Incarnation, known: number, what: string): void {
    const name = this.#notDurable(incarnation, known);
    must(name === undefined, () => `${what} starts before ${name} is durable`);
  }

  /** The first of the steps seen that has no settlement in the database. */
  #notDurable({ id, runNumber, seen }: Incarnation, known: number): string | undefined {
    const isDurable = (name: string): boolean =>
      (this.#checker.stepOf(id, runNumber, name)?.seq ?? null) !== null;
    return seen.slice(0, known).find((name) => !isDurable(name));
  }

  // Talk

  registers(process: string, runner: string): void {
    this.#processOf.set(runner, process);
  }

  /**
   * A process asks for new instances. Two lives of the code in one process may ask for the same child, such as an evicted one
   * that tries again and the one that replays: then the request is one of theirs.
   */
  creates(process: string, ids: readonly string[]): void {
    for (const id of ids) {
      const lives = (this.#spawning.get(id) ?? []).filter(([life]) => life.process === process);
      if (lives.some((life) => this.#notDurable(...life) === undefined)) continue;
      for (const life of lives) this.#mustBeDurable(...life, `the creation of ${id}`);
    }
  }

  /**
   * A process sends a part. Under one claim parts come in order, each only when the last was answered, and
   * unchanged when sent again.
   */
  sends(process: string, part: Part): void {
    const { iid, claimNumber, partNumber } = part;
    const key = `${iid}/${claimNumber}`;
    const text = JSON.stringify(part);
    const talk = this.#talks.get(key) ?? { process, partNumber: 0, text: "", fate: "ok" };
    this.#talks.set(key, talk);
    const what = `${process} sends part ${claimNumber}.${partNumber}`;
    must(talk.process === process, () => `${what} under the claim of ${talk.process}`);
    must(talk.fate !== "lost", () => `${what}, and has heard that the claim is lost`);
    if (partNumber === talk.partNumber) {
      must(text === talk.text, () => `${what} again and changed: ${talk.text} → ${text}`);
      return;
    }
    must(talk.fate === "ok", () => `${what} before the last one was answered`);
    must(partNumber === talk.partNumber + 1, () => `${what} after part ${talk.partNumber}`);
    Object.assign(talk, { partNumber, text, fate: "unknown" });
    if (part.next.kind === "park") this.#mustBeIdle(process, part);
  }

  /** Checks that nothing that could begin waits for the end of a wait. */
  #mustBeIdle(process: string, { iid, claimNumber, steps }: Part): void {
    const id = this.#checker.idOf(iid) ?? "";
    // The rows may be those of a newer owner, who refuses this part.
    if (this.#checker.ticketOf(id)?.claim_no !== claimNumber) return;
    const incarnation = this.#latest.get(`${process}/${id}`);
    const written = new Set(steps.map(({ name }) => name));
    for (const name of incarnation?.unbegun ?? []) {
      const row = this.#checker.stepOf(id, incarnation?.runNumber ?? 0, name);
      const isOpen = row === undefined || row.status === "running";
      must(!isOpen || written.has(name), () => `${id} parks, and ${name} has not begun`);
    }
  }

  /** Checks that no body runs, because a run that has given its ticket up has no right to any. */
  #mustRunNothing({ iid, claimNumber, runNumber }: Part): void {
    const id = this.#checker.idOf(iid);
    const incarnation = this.#latest.get(
      `${this.#talks.get(`${iid}/${claimNumber}`)?.process}/${id}`,
    );
    if (incarnation?.runNumber !== runNumber) return;
    for (const [step, { aborted }] of incarnation.running) {
      must(aborted, () => `${id} gives its ticket up, and the body of ${step} runs`);
    }
  }

  hears(part: Part, answer: PartAnswer): void {
    const { iid, runNumber, claimNumber } = part;
    const talk = this.#talks.get(`${iid}/${claimNumber}`);
    if (talk === undefined || answer.kind === "busy" || answer.kind === "bad") return;
    talk.fate = answer.kind;
    if (answer.kind === "ok" && isEnd(part.next)) {
      this.#finished.set(`${this.#checker.idOf(iid)}#${runNumber}`, talk.process);
    }
  }

  // Deaths

  tookOver(iid: string): void {
    this.#takeovers.set(iid, 1 + (this.#takeovers.get(iid) ?? 0));
  }

  /** The store took a part: progress, or the end of a run that killed its owners. */
  took(part: Part, isCrashed: boolean, maxTakeovers: number): void {
    const { iid } = part;
    if (part.next.kind === "park" || part.next.kind === "release") this.#mustRunNothing(part);
    const inARow = this.#takeovers.get(iid) ?? 0;
    must(
      !isCrashed || inARow >= maxTakeovers,
      () => `${this.#checker.idOf(iid)} is said to have crashed after ${inARow} takeovers`,
    );
    // The same that the engine forgets takeovers for.
    if (part.next.kind !== "continue" || part.steps.some(({ seq }) => seq !== null)) {
      this.#takeovers.delete(iid);
    }
  }
}

export function newIncarnation(process: string, id: string, runNumber: number): Incarnation {
  return {
    id,
    runNumber,
    process,
    seen: [],
    unbegun: new Set(),
    lastSeq: 0,
    running: new Map(),
    settled: new Set(),
    hasNews: false,
    isTakeover: false,
    strideTurn: -1,
    calls: new Map(),
  };
}

function isEnd({ kind }: Next): boolean {
  return kind === "complete" || kind === "fail";
}
