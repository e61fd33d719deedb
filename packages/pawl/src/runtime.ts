import type { AsyncContext, Cancel, Runtime, Scheduler, Stride } from "./model/seams.js";
import { utf8, type WebResponse } from "./model/web.js";

// Every modern JavaScript runtime has these globals. Besides `testing/`, only this file touches the real world.
declare const crypto: {
  getRandomValues(target: Uint8Array): Uint8Array;
  readonly subtle: { digest(name: "SHA-256", data: Uint8Array): Promise<ArrayBuffer> };
};
declare function setTimeout(callback: () => void, ms: number): unknown;
declare function clearTimeout(timer: unknown): void;
declare const setImmediate: ((callback: () => void) => unknown) | undefined;
declare function queueMicrotask(callback: () => void): void;
declare const process:
  | { getBuiltinModule?(name: string): unknown; nextTick?(this: void, callback: () => void): void }
  | undefined;

declare const fetch: (url: string, init: object) => Promise<WebResponse>;

/** In every runtime a timer with a longer delay fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function after(ms: number, callback: () => void): Cancel {
  let timer = setTimeout(
    function fire() {
      if (rest <= MAX_TIMER_MS) return callback();
      rest -= MAX_TIMER_MS;
      timer = setTimeout(fire, Math.min(rest, MAX_TIMER_MS));
    },
    Math.min(ms, MAX_TIMER_MS),
  );
  let rest = ms;
  return () => clearTimeout(timer);
}

type Callback = () => void;

const nothing: Callback = () => {};

/** This is captured when the module loads, so that fake timers of a test do not keep runs from going on. */
const immediate = typeof setImmediate === "function" ? setImmediate : undefined;

/** At most this many macrotasks follow one another before the process sees to its I/O: 0.2 ms. */
const MOST_AHEAD = 32;

/**
 * Returns a function that calls back in the next macrotask. All callbacks that are requested together share one
 * macrotask: one for each would cost 3 µs in Node and 15 µs in workerd.
 *
 * If each callback requests the next, as in a replay, several macrotasks are scheduled ahead, up to `mostAhead`. Node
 * then runs them in one round of its event loop: 5 µs a step instead of 10 in a process that has just begun.
 */
export function sharedMacrotask(
  next: (callback: Callback) => void = nextMacrotask,
  mostAhead = 1,
): (callback: Callback) => void {
  /**
   * Callbacks that wait for the next macrotask. Two lists take turns: a new one for each macrotask would be 150 bytes.
   */
  let waiting: Callback[] = [];
  let spare: Callback[] = [];
  let count = 0;
  /** How many scheduled macrotasks are still to come. */
  let coming = 0;
  /** How many macrotasks were scheduled together the last time. */
  let ahead = 0;
  /** Whether one of those macrotasks had no callback to call. */
  let wasIdle = false;
  const callAll = (): void => {
    coming -= 1;
    if (count === 0) wasIdle = true;
    const callbacks = waiting;
    const end = count;
    waiting = spare;
    spare = callbacks;
    count = 0;
    let called = 0;
    try {
      for (; called < end; called++) {
        const callback = callbacks[called] as Callback;
        callbacks[called] = nothing;
        callback();
      }
    } finally {
      // The process sees the error that a callback throws; the callbacks after it are called in another macrotask.
      for (called += 1; called < end; called++) {
        defer(callbacks[called] as Callback);
        callbacks[called] = nothing;
      }
    }
  };
  const defer = (callback: Callback): void => {
    waiting[count++] = callback;
    if (coming > 0) return;
    ahead = wasIdle ? 1 : Math.min(2 * ahead || 1, mostAhead);
    wasIdle = false;
    for (; coming < ahead; coming++) next(callAll);
  };
  return defer;
}

/**
 * Calls back in a macrotask of its own. It uses `setImmediate` where there is one, because `setTimeout(0)` takes 1 ms
 * and more. In workerd, which may have nothing else, `setTimeout(0)` is fast, and a message of a MessageChannel would
 * come before all microtasks.
 */
function nextMacrotask(callback: () => void): void {
  if (immediate !== undefined) immediate(callback);
  else setTimeout(callback, 0);
}

type AsyncHooks = {
  AsyncLocalStorage: new () => {
    run<T>(value: unknown, callback: () => T): T;
    getStore(): unknown;
  };
};

/**
 * Returns an `AsyncLocalStorage`. There is no import of it, so that the package loads where there is no such module.
 */
function asyncContext(): AsyncContext | null {
  const hooks =
    typeof process === "undefined"
      ? undefined
      : (process.getBuiltinModule?.("node:async_hooks") as AsyncHooks | undefined);
  if (hooks === undefined) return null;
  const storage = new hooks.AsyncLocalStorage();
  return { run: (value, callback) => storage.run(value, callback), get: () => storage.getStore() };
}

export async function sha256(text: string): Promise<Uint8Array> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", utf8(text)));
}

const { navigator } = globalThis as { navigator?: { userAgent?: string } };
const isWorkerd = navigator?.userAgent === "Cloudflare-Workers";

/**
 * Returns the source of strides. A tick of Node that is requested in a microtask comes when all microtasks are done,
 * before any timer or I/O, and so ends the stride. In workerd a tick is a microtask itself, and no stride is ever known
 * to be over.
 */
function strides(): () => Stride {
  const tick = typeof process === "undefined" || isWorkerd ? undefined : process.nextTick;
  let current = { isOver: tick !== undefined };
  if (tick === undefined) return () => current;
  // Both functions are captured here, because fakes of a test would keep a stride from ending.
  const microtask = queueMicrotask;
  const end = (): void => {
    current.isOver = true;
  };
  const endLater = (): void => tick(end);
  return () => {
    if (current.isOver) {
      current = { isOver: false };
      microtask(endLater);
    }
    return current;
  };
}

/**
 * Returns shared macrotasks and rounds. In workerd macrotasks are not scheduled ahead: they would be lost with the
 * request that they belong to.
 */
function macrotasks(): Pick<Scheduler, "macrotask" | "round"> {
  const round = sharedMacrotask();
  const hasRounds = immediate !== undefined && !isWorkerd;
  return { round, macrotask: hasRounds ? sharedMacrotask(nextMacrotask, MOST_AHEAD) : round };
}

/** Calls `fetch` as a plain function, because browsers refuse another `this`. */
export function webFetch(url: string, init: object): Promise<WebResponse> {
  return fetch(url, init);
}

/**
 * Returns a runtime that shares its macrotasks with no other. In workerd an isolate has many Durable Objects. None of
 * them may run the callbacks of another, and the macrotasks of one that was evicted never come.
 */
export function newWebRuntime(): Runtime {
  return { ...webRuntime, scheduler: { ...webRuntime.scheduler, ...macrotasks() } };
}

/** The runtime for whatever can share one in the whole process. */
export const webRuntime: Runtime = {
  clock: { now: () => Date.now() },
  random: {
    next: () => Math.random(),
    bytes: (target) => void crypto.getRandomValues(target),
  },
  scheduler: {
    sleep: (ms) => new Promise((resolve) => void after(ms, resolve)),
    after,
    grace: after,
    stride: strides(),
    ...macrotasks(),
  },
  context: asyncContext(),
};
