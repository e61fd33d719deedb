import type { Store } from "../store/store.js";

export type WatchedStore<Tx> = {
  readonly store: Store<Tx>;
  /** The verbs that are not answered yet. */
  pending(): string[];
};

/** Knows the calls that are not answered yet. */
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
