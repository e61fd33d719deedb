export interface Connection {
  /** Set when the connection is lost, used or idle. */
  broken: boolean;
  close(): void;
}

/**
 * A few connections of the engine's own, each used by one caller at a time, opened when needed and opened
 * again after they broke. Callers queue in order.
 */
export class Lanes<C extends Connection> {
  readonly #idle: C[] = [];
  readonly #queue: (() => void)[] = [];
  #busy = 0;
  #closed = false;

  constructor(
    private readonly size: number,
    private readonly open: () => Promise<C>,
  ) {}

  async use<T>(work: (connection: C) => Promise<T>): Promise<T> {
    if (this.#busy >= this.size) await new Promise<void>((turn) => this.#queue.push(turn));
    else this.#busy += 1;
    try {
      const connection = await this.#connection();
      try {
        return await work(connection);
      } finally {
        if (connection.broken || this.#closed) connection.close();
        else this.#idle.push(connection);
      }
    } finally {
      // A waiting caller takes over the lane, so `busy` stays.
      const next = this.#queue.shift();
      if (next === undefined) this.#busy -= 1;
      else next();
    }
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  async #connection(): Promise<C> {
    if (this.#closed) throw new Error("the store is closed");
    for (
      let connection = this.#idle.pop();
      connection !== undefined;
      connection = this.#idle.pop()
    ) {
      if (!connection.broken) return connection;
      connection.close();
    }
    return this.open();
  }
}
