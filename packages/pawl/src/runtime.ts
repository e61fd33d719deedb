import type { AsyncContext, Cancel, Runtime, Scheduler, Stride } from "./model/seams.js";
import { utf8, type WebResponse } from "./model/web.js";

/** What every modern JavaScript runtime has. With `testing/`, the only place that touches the real world. */
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

/** A longer delay fires at once in every runtime. */
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

/** As it is now: fake timers of a test do not keep runs from going on. */
const immediate = typeof setImmediate === "function" ? setImmediate : undefined;

/** So many callbacks follow one another before the process sees to its I/O: 0.2 ms. */
const MOST_AHEAD = 32;

/**
 * All that are asked for together share one: of their own, each would cost 3 µs in Node and 15 µs in workerd.
 *
 * Where one leads to the next, as in a replay, several are asked for ahead: Node then runs them in one round of its
 * event loop, 5 µs a step instead of 10 in a process that has just begun.
 */
export function sharedMacrotask(
  next: (callback: Callback) => void = nextMacrotask,
  mostAhead = 1,
): (callback: Callback) => void {
  /** Calls that wait for the next macrotask. Two lists take turns: a new one for each would be 150 bytes. */
  let waiting: Callback[] = [];
  let spare: Callback[] = [];
  let count = 0;
  /** Macrotasks that are still to come, of how many that were asked for together, and whether one had nothing to do. */
  let coming = 0;
  let ahead = 0;
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
      // What one of them throws is for the process to see, and must not keep the others from their turn.
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
 * `setTimeout(0)` takes 1 ms and more, but not in workerd, which may have nothing else: there a message of a MessageChannel
 * comes before all microtasks.
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

/** Without an import, so that the package loads where there is no such module. */
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
 * A tick of Node that is asked for in a microtask comes when all microtasks are done, before any timer or I/O. Workerd's is a
 * microtask itself.
 */
function strides(): () => Stride {
  const tick = typeof process === "undefined" || isWorkerd ? undefined : process.nextTick;
  let current = { isOver: tick !== undefined };
  if (tick === undefined) return () => current;
  // As it is now, as that is: fakes of a test would keep this stride from ending.
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

/** In workerd macrotasks that were asked for ahead would be lost with the request that they belong to. */
function macrotasks(): Pick<Scheduler, "macrotask" | "round"> {
  const round = sharedMacrotask();
  const hasRounds = immediate !== undefined && !isWorkerd;
  return { round, macrotask: hasRounds ? sharedMacrotask(nextMacrotask, MOST_AHEAD) : round };
}

/** Called as a plain function: browsers want no other `this`. */
export function webFetch(url: string, init: object): Promise<WebResponse> {
  return fetch(url, init);
}

/**
 * Shares its macrotasks with no other. In workerd an isolate has many Durable Objects: none may run another's callbacks,
 * and those of one that was evicted never come.
 */
export function newWebRuntime(): Runtime {
  return { ...webRuntime, scheduler: { ...webRuntime.scheduler, ...macrotasks() } };
}

/** Where one for the whole process will do. */
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
