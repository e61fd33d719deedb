// The seams through which the outside world comes in. The simulator replaces all of them, so nothing else in the domain
// touches a real clock, a random source or a timer.

/** A clock. Tests give one to a store, where it stands in for the database's own. */
export interface Clock {
  /** Returns the time in milliseconds since the epoch. */
  now(): number;
}

export interface Random {
  /** Returns a number that is uniform in [0, 1). */
  next(): number;
  /** Fills the array with random bytes. */
  bytes(target: Uint8Array): void;
}

export interface Scheduler {
  /** Resolves after at least this long. Correctness must not depend on when. */
  sleep(ms: number): Promise<void>;
  /** Calls back after at least this long, unless it is cancelled first. */
  after(ms: number, callback: () => void): Cancel;
  /** Does the same in real time even under a test clock, for code that awaits the outside world. */
  grace(ms: number, callback: () => void): Cancel;
  /** Returns the current stride, which is over when all its microtasks are done. */
  stride(): Stride;
  /** Calls back in a new macrotask, when the code has done all it can do without waiting. */
  macrotask(callback: () => void): void;
  /**
   * Calls back after all macrotasks that are due, and maybe some I/O. Requests of the same round have collected by
   * then, and can travel together.
   */
  round(callback: () => void): void;
}

export type Cancel = () => void;

/** A stride is over before any timer fires or any I/O is seen. Where the runtime cannot tell, `isOver` stays false. */
export interface Stride {
  readonly isOver: boolean;
}

/** Carries a value along with a call, through everything that the call awaits. */
export interface AsyncContext {
  /** Calls back with this value as the current one. */
  run<T>(value: unknown, callback: () => T): T;
  /** Returns the current value, or undefined. */
  get(): unknown;
}

/** The outside world of one engine. */
export interface Runtime {
  /**
   * The process's clock. It is used for ids and pauses, never for a time that is stored or compared with a stored one.
   */
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
  /** Null where the runtime cannot carry values along with calls. */
  readonly context: AsyncContext | null;
}
