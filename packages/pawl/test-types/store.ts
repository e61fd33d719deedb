import type { Store } from "pawl";

/** What a store calls a transaction. */
export interface Handle {
  exec(sql: string): void;
}

export declare const store: Store<Handle>;
