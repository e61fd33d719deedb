import type { Store } from "../store/store.js";

/** A store that knows which of its calls are not answered yet. */
export type WatchedStore<Tx> = {
  readonly store: Store<Tx>;
  /** Returns the verbs that are not answered yet, one for each call. */
  pending(): string[];
};

/** Wraps a store so that it knows its unanswered calls. */
export function watched<Tx>(store: Store<Tx>): WatchedStore<Tx> {
  const pending = new Set<{ readonly verb: string }>();
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        const call = { verb: String(name) };
        pending.add(call);
        try {
          return await member.apply(target, args);
        } finally {
          pending.delete(call);
        }
      };
    },
  });
  return { store: proxy, pending: () => Array.from(pending, ({ verb }) => verb) };
}
