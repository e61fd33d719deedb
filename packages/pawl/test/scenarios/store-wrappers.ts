import { WorkflowError, type Store } from "pawl";

type Verb = keyof Store & string;

function wrapped(store: Store, call: (verb: Verb, run: () => unknown) => unknown): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]): unknown =>
        call(name as Verb, () => member.apply(target, args) as unknown);
    },
  });
}

/** Stores whose connections the test can cut, by the order in which they were made. */
export function switchable() {
  const isCut: boolean[] = [];
  return {
    around(store: Store): Store {
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

/** Counts calls by verb. */
export function counting() {
  const counts = new Map<Verb, number>();
  return {
    around: (store: Store): Store =>
      wrapped(store, (verb, run) => {
        counts.set(verb, (counts.get(verb) ?? 0) + 1);
        return run();
      }),
    reset: () => counts.clear(),
    /** How often each verb was called since the last reset. */
    get calls(): Record<string, number> {
      return Object.fromEntries(counts);
    },
    count: (...verbs: Verb[]): number =>
      verbs.reduce((sum, verb) => sum + (counts.get(verb) ?? 0), 0),
  };
}
