import type { Store } from "pawl";

/** The type of a store's transactions. */
export interface Handle {
  exec(sql: string): void;
}

export declare const store: Store<Handle>;
