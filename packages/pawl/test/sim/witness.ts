import type { Next, Part, PartAnswer } from "../../src/store/part.js";
import { must, type Checker } from "./checker.js";

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
};

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
  readonly #latest = new Map<string, Incarnation>();
  readonly #begun = new Set<string>();
  readonly #talks = new Map<string, Talk>();
  readonly #finished = new Map<string, string>();
  /** The process that registered each runner. */
  readonly #processOf = new Map<string, string>();
  readonly #takeovers = new Map<string, number>();
  /** Children that are being created outside of steps, with how much their parents had seen. */
  readonly #spawning = new Map<string, readonly [Incarnation, number]>();

  constructor(checker: Checker, now: () => number) {
    this.#checker = checker;
    this.#now = now;
  }

  // Code

  /** The code of a run begins, which may happen once for each claim. */
  begins(process: string, id: string, runNumber: number): Incarnation {
    const incarnation = newIncarnation(process, id, runNumber);
    this.#latest.set(`${process}/${id}`, incarnation);
    const ticket = this.#checker.ticketOf(id);
    if (ticket !== undefined && this.#owns(incarnation)) {
      const claim = `${ticket.tid}/${ticket.claim_no}`;
      must(!this.#begun.has(claim), () => `the code of ${id} begins twice under one claim`);
      this.#begun.add(claim);
    }
    return incarnation;
  }

  /** The code is given a result. Its process must own the run, and the order must be the one recorded. */
  sees(incarnation: Incarnation, step: string, isNested: boolean): void {
    const { id, runNumber, seen, unbegun, lastSeq } = incarnation;
    seen.push(step);
    unbegun.delete(step);
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
  enters(incarnation: Incarnation, step: string, known: number, signal: Signal): void {
    const { id, runNumber, process } = incarnation;
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

  /** A body has ended. */
  leaves({ id, runNumber, process, running }: Incarnation, step: string): void {
    const isAborted = running.get(step)?.aborted === true;
    running.delete(step);
    const hasFinished = this.#finished.get(`${id}#${runNumber}`) === process;
    must(!hasFinished || isAborted, () => `${id} ended, and the signal of ${step} did not fire`);
  }

  spawns(incarnation: Incarnation, child: string): void {
    this.#spawning.set(child, [incarnation, incarnation.seen.length]);
  }

  #mustBeDurable({ id, runNumber, seen }: Incarnation, known: number, what: string): void {
    for (const name of seen.slice(0, known)) {
      const row = this.#checker.stepOf(id, runNumber, name);
      must(row !== undefined && row.seq !== null, () => `${what} starts before ${name} is durable`);
    }
  }

  // Talk

  registers(process: string, runner: string): void {
    this.#processOf.set(runner, process);
  }

  creates(ids: readonly string[]): void {
    for (const id of ids) {
      const spawning = this.#spawning.get(id);
      if (spawning !== undefined) this.#mustBeDurable(...spawning, `the creation of ${id}`);
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
  #mustBeIdle(process: string, { iid, steps }: Part): void {
    const id = this.#checker.idOf(iid) ?? "";
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
    if (part.next.kind === "park" || part.steps.some(({ seq }) => seq !== null)) {
      this.#takeovers.delete(iid);
    }
  }
}

export function newIncarnation(process: string, id: string, runNumber: number): Incarnation {
  return { id, runNumber, process, seen: [], unbegun: new Set(), lastSeq: 0, running: new Map() };
}

function isEnd({ kind }: Next): boolean {
  return kind === "complete" || kind === "fail";
}
