import { WorkflowError, type Store } from "pawl";
import type { Part } from "../../src/store/store.js";

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

/** A store whose answers to one verb come late: after the call that the gate lets through. */
export function delaying(verb: Verb, gate: { passed: Promise<unknown> }, called: () => void) {
  let isArmed = false;
  return {
    arm: () => void (isArmed = true),
    around: (store: Store): Store =>
      wrapped(store, async (name, run) => {
        const answer = await run();
        if (name === verb && isArmed) {
          called();
          await gate.passed;
        }
        return answer;
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
