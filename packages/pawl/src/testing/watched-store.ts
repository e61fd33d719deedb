import type { Store } from "../store/store.js";

export type WatchedStore<Tx> = { readonly store: Store<Tx>; pending(): number };

/** Counts calls that are not answered yet. */
export function watched<Tx>(store: Store<Tx>): WatchedStore<Tx> {
  let pending = 0;
  const proxy = new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return async (...args: unknown[]): Promise<unknown> => {
        pending += 1;
        try {
          return await member.apply(target, args);
        } finally {
          pending -= 1;
        }
      };
    },
  });
  return { store: proxy, pending: () => pending };
}
