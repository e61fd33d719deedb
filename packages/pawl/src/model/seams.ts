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
}

export interface Runtime {
  /** The process's clock: for ids and pauses, never for anything stored or compared. */
  readonly clock: Clock;
  readonly random: Random;
  readonly scheduler: Scheduler;
}
