import { WorkflowError, type Store } from "pawl";
import type { VirtualTime } from "pawl/testing";
import { webRuntime } from "../../src/runtime.js";
import type { Part } from "../../src/store/part.js";
import { Gate } from "./stage.js";

type Verb = keyof Store;

function wrapped(
  store: Store,
  call: (verb: Verb, run: () => unknown, args: readonly unknown[]) => unknown,
): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]): unknown =>
        call(name as Verb, () => member.apply(target, args) as unknown, args);
    },
  });
}

/** Stores whose connections the test can cut, by the order in which they were made. */
export function switchable() {
  const isCut: boolean[] = [];
  return {
    around: (store: Store): Store => {
      const n = isCut.push(false) - 1;
      return wrapped(store, async (_verb, run) => {
        if (isCut[n]) throw new WorkflowError("STORE_UNAVAILABLE", "the line is cut");
        return run();
      });
    },
    cut: (n: number) => void (isCut[n] = true),
    restore: (n: number) => void (isCut[n] = false),
  };
}

/** Holds the next call of one verb, either before it is sent or with its answer. */
export function holding(verb: Verb, what: "request" | "answer") {
  const [reached, gate, heard] = [new Gate(), new Gate(), new Gate()];
  let isArmed = false;
  const hold = (): Promise<void> => {
    reached.open();
    return gate.passed;
  };
  return {
    arm: () => void (isArmed = true),
    reached: reached.passed,
    /** Resolves when the caller has heard the answer. */
    letGo(): Promise<void> {
      gate.open();
      return heard.passed;
    },
    around: (store: Store): Store =>
      wrapped(store, async (name, run) => {
        if (name !== verb || !isArmed) return run();
        isArmed = false;
        try {
          if (what === "request") await hold();
          const answer = await run();
          if (what === "answer") await hold();
          return answer;
        } finally {
          webRuntime.scheduler.macrotask(heard.open);
        }
      }),
  };
}

/** Carries out the next call of one verb, and loses its answer. */
export function losing(verb: Verb) {
  let isArmed = false;
  return {
    arm: () => void (isArmed = true),
    around: (store: Store): Store =>
      wrapped(store, async (name, run) => {
        const answer = await run();
        if (name !== verb || !isArmed) return answer;
        isArmed = false;
        throw new WorkflowError("STORE_UNAVAILABLE", "the answer got lost");
      }),
  };
}

/** Advances everybody's clock during each call of one verb, by each of these times in turn. */
export function taking(verb: Verb, ms: readonly number[]) {
  let calls = 0;
  return {
    around: (store: Store, clock: VirtualTime): Store =>
      wrapped(store, (name, run) => {
        if (name === verb) clock.advance(ms[calls++ % ms.length] ?? 0);
        return run();
      }),
  };
}

/** Counts calls by verb, and keeps what was committed. */
export function counting() {
  const counts = new Map<Verb, number>();
  const parts: Part[] = [];
  return {
    around: (store: Store): Store =>
      wrapped(store, (verb, run, args) => {
        counts.set(verb, (counts.get(verb) ?? 0) + 1);
        if (verb === "commit") parts.push(...(args[0] as Part[]));
        return run();
      }),
    reset(): void {
      counts.clear();
      parts.length = 0;
    },
    parts,
    /** How often each verb was called since the last reset. */
    get calls(): Record<string, number> {
      return Object.fromEntries(counts);
    },
  };
}
