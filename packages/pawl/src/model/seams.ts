/**
 * Where the world comes in. The simulator replaces all of it, so nothing else in the domain touches a
 * real clock, a random source or a timer.
 */

/** A clock that stands in for the database's own, in tests. Milliseconds since the epoch. */
export interface Clock {
  now(): number;
}

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Fills the array with random bytes. */
  bytes(target: Uint8Array): void;
}

export interface Scheduler {
  /** Resolves after at least this long; never a basis for correctness. */
  sleep(ms: number): Promise<void>;
  /** Calls back after at least this long, unless cancelled first. */
  after(ms: number, callback: () => void): Cancel;
  /** The same in real time, also under a test clock: patience for code that awaits the outside world. */
  grace(ms: number, callback: () => void): Cancel;
  /** What happens now, until all its microtasks are done. */
  stride(): Stride;
  /** Calls back in a new macrotask: all that the code could do without waiting is done by then. */
  macrotask(callback: () => void): void;
  /** After all macrotasks that are due, and maybe some I/O: what comes together has come by then, and can travel together. */
  round(callback: () => void): void;
}

export type Cancel = () => void;

/** Over before anything else happens; where the runtime cannot tell, it never is. */
export interface Stride {
  readonly isOver: boolean;
}

/** A value that follows a call through everything it awaits. */
export interface AsyncContext {
  run<T>(value: unknown, callback: () => T): T;
  get(): unknown;
}

export interface Runtime {
  /** The process's clock: for ids and pauses, never for anything stored or compared. */
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  /** Null where the runtime has none. */
  readonly context: AsyncContext | null;
}
