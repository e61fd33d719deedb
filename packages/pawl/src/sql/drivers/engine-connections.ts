import { StoreClosedError } from "../../store/errors.js";
import type { ConnectionClass } from "../driver.js";

export interface Connection {
  /** Set when the connection is lost, whether it was in use or idle. */
  broken: boolean;
  close(): void;
}

/**
 * A few connections of the engine's own. Each is used by one caller at a time, opened when it is needed and opened
 * again after it broke. Callers queue in order, the engine's and the requests' apart. Requests leave one connection to
 * the engine, so that a request that waits for a user's lock never holds up a commit or a heartbeat.
 */
export class EngineConnections<C extends Connection> {
  readonly #idle: C[] = [];
  readonly #waiting: Record<ConnectionClass, (() => void)[]> = { engine: [], request: [] };
  readonly #busy: Record<ConnectionClass, number> = { engine: 0, request: 0 };
  #closed = false;

  constructor(
    private readonly size: number,
    private readonly open: () => Promise<C>,
  ) {}

  async use<T>(by: ConnectionClass, work: (connection: C) => Promise<T>): Promise<T> {
    if (this.#hasRoom(by)) this.#busy[by] += 1;
    else await new Promise<void>((turn) => this.#waiting[by].push(turn));
    try {
      const connection = await this.#connection();
      try {
        return await work(connection);
      } finally {
        if (connection.broken || this.#closed) connection.close();
        else this.#idle.push(connection);
      }
    } finally {
      this.#busy[by] -= 1;
      // A request goes first if none is running: an engine that always has more to do would never let one in.
      if (this.size > 1 && this.#busy.request === 0) this.#admit("request");
      this.#admit("engine");
      this.#admit("request");
    }
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }

  #hasRoom(by: ConnectionClass): boolean {
    const { engine, request } = this.#busy;
    if (engine + request >= this.size) return false;
    return by === "engine" || request < Math.max(1, this.size - 1);
  }

  #admit(by: ConnectionClass): void {
    if (!this.#hasRoom(by)) return;
    const turn = this.#waiting[by].shift();
    if (turn === undefined) return;
    this.#busy[by] += 1;
    turn();
  }

  async #connection(): Promise<C> {
    if (this.#closed) throw new StoreClosedError();
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (!idle.broken) return idle;
      idle.close();
    }
    return this.open();
  }
}
