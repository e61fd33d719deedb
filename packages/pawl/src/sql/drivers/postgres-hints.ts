import { utf8Length } from "../../model/codec/utf8.js";
import { idMaker } from "../../model/ids.js";
import type { Cancel, Runtime } from "../../model/seams.js";
import { StoreClosedError } from "../../store/errors.js";
import type { Hint, HintChannel, HintListener, Teller } from "../../store/hints.js";
import type { Target } from "../../model/target.js";
import { connect, type PgConnection, type PgPool } from "./postgres.js";

/**
 * The most hints that wait for one channel while the server is away or does not keep up. A hint that something is due
 * always fits.
 */
const MAX_WAITING = 10_000;
/**
 * NOTIFY takes a lock that is one for the whole server. A transaction that does nothing else holds it for an instant,
 * since it does not wait for the disk. All hints that come within so many milliseconds go out in one transaction. With
 * 5 ms, a client and a runner that wait for one another did 11 % less.
 */
const REST_MS = 2;
/** The server's limit. Many hints go as one notification, since each costs every process that hears it some 5 µs. */
const MAX_PAYLOAD_BYTES = 7_999;
const FIRST_BACKOFF_MS = 250;
const MAX_BACKOFF_MS = 30_000;
/** A connection that a firewall has forgotten hears nothing and does not know it, so it is pinged. */
const PING_EVERY_MS = 30_000;
const PING_TIMEOUT_MS = 5_000;
const LAST_WORDS_MS = 500;

/**
 * Hints by LISTEN and NOTIFY, on a connection of their own beside all commits. The connection is opened for the first
 * hint or listener. While there is a listener it is opened again when it is lost, after a growing pause.
 */
export class PgHints implements HintChannel {
  readonly #channel: string;
  readonly #pool: PgPool;
  readonly #runtime: Runtime;
  /** Hints that wait to be told, as text, by channel. */
  readonly #waiting = new Map<string, Set<string>>();
  #listener: HintListener | null = null;
  #connection: PgConnection | null = null;
  #connecting: Promise<PgConnection> | null = null;
  /** Names this process and not its session: a process that is to be told of an end may have lost its session since. */
  readonly #self: Teller;
  #isListening = false;
  #telling: Promise<void> | null = null;
  #isClosed = false;
  /** Ends the pause before the next ping. */
  #ping: (() => void) | null = null;
  /** Ends the pause after hints that could not be told. */
  #tellAgain: (() => void) | null = null;
  readonly #pauses = new Set<() => void>();

  /** A channel for all processes on one schema. The pool's options lead to the server. */
  constructor(pool: PgPool, schema: string, runtime: Runtime) {
    this.#channel = `pawl_${schema}`;
    this.#pool = pool;
    this.#runtime = runtime;
    this.#self = idMaker(runtime)();
  }

  get isListening(): boolean {
    return this.#isListening;
  }

  /** One listener at a time, since a process has one runner. */
  listen(listener: HintListener): Cancel {
    this.#listener = listener;
    void this.#keepListening(listener);
    return () => {
      if (this.#listener !== listener) return;
      this.#listener = null;
      this.#isListening = false;
      this.#ping?.();
      this.#connection?.client.query({ text: "UNLISTEN *" }).catch(() => {});
    };
  }

  tell(hint: Hint, to?: Teller): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    const channel = to === undefined ? this.#channel : channelOf(to);
    const hints = this.#waiting.get(channel) ?? new Set();
    this.#waiting.set(channel, hints);
    if (hints.size < MAX_WAITING || hint.kind === "due") hints.add(JSON.stringify(hint));
    return (this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = null;
    }));
  }

  /** Hints that are on their way get a moment. */
  async close(): Promise<void> {
    this.#listener = null;
    if (this.#telling !== null) await Promise.race([this.#telling, this.#pause(LAST_WORDS_MS)]);
    this.#isClosed = true;
    this.#drop();
    for (const done of this.#pauses) done();
  }

  async #tellAll(): Promise<void> {
    for (let failures = 0; this.#waiting.size > 0 && !this.#isClosed;) {
      try {
        const { client } = await this.#connected();
        // Hints that are told in the same round go with it.
        await new Promise<void>((resolve) => this.#runtime.scheduler.round(resolve));
        const messages = [...this.#waiting].flatMap(([channel, hints]) =>
          payloads(this.#self, hints).map((payload) => [channel, payload]),
        );
        this.#waiting.clear();
        await client.query({
          text: "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS m(channel, payload)",
          values: [messages.map(([channel]) => channel), messages.map(([, payload]) => payload)],
        });
        failures = 0;
        await this.#pause(REST_MS);
      } catch {
        // The hints are lost, as hints may be: by the time there is a server again, they are old.
        this.#waiting.clear();
        this.#drop();
        await this.#pause(this.#backoffMs(failures++), (end) => (this.#tellAgain = end));
      }
    }
  }

  async #keepListening(listener: HintListener): Promise<void> {
    const isWanted = (): boolean => this.#listener === listener;
    for (let failures = 0; isWanted();) {
      try {
        const connection = await this.#connected();
        if (!connection.direct) {
          listener.failed(new Error("a pooler stands between: it keeps notifications back"), null);
          return;
        }
        for (const channel of [channelOf(this.#self), this.#channel]) {
          await connection.client.query({ text: `LISTEN "${channel}"` });
        }
        if (!isWanted()) return;
        failures = 0;
        this.#isListening = true;
        this.#tellAgain?.();
        listener.listening();
        while (isWanted() && !connection.broken) {
          await this.#pause(PING_EVERY_MS, (end) => (this.#ping = end));
          if (isWanted()) {
            await connection.client.query({ text: "SELECT 1", query_timeout: PING_TIMEOUT_MS });
          }
        }
        if (isWanted()) throw new Error("the connection was lost");
      } catch (error) {
        if (!isWanted()) return;
        this.#drop();
        const retryInMs = this.#backoffMs(failures++);
        listener.failed(error, retryInMs);
        await this.#pause(retryInMs);
      }
    }
  }

  #connected(): Promise<PgConnection> {
    if (this.#connection?.broken === true) this.#drop();
    if (this.#connection !== null) return Promise.resolve(this.#connection);
    return (this.#connecting ??= this.#open().finally(() => {
      this.#connecting = null;
    }));
  }

  async #open(): Promise<PgConnection> {
    const connection = await connect(this.#pool, () => this.#ping?.());
    if (this.#isClosed) {
      connection.close();
      throw new StoreClosedError();
    }
    this.#connection = connection;
    connection.client.on("notification", ({ payload }) => {
      const { from, hints } = messageFrom(payload);
      if (from !== this.#self) for (const hint of hints) this.#listener?.hear(hint, from);
    });
    return connection;
  }

  #drop(): void {
    this.#isListening = false;
    this.#connection?.close();
    this.#connection = null;
    this.#ping?.();
  }

  #backoffMs(failures: number): number {
    const mostMs = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** failures);
    return Math.round(mostMs * (0.5 + this.#runtime.random.next() / 2));
  }

  /** Waits. Only a close ends it early, or the function that `endable` is given. */
  #pause(ms: number, endable: (end: () => void) => void = () => {}): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel();
        this.#pauses.delete(done);
        resolve();
      };
      const cancel = this.#runtime.scheduler.after(ms, done);
      this.#pauses.add(done);
      endable(done);
    });
  }
}

/** The channel of one process. It is no schema's channel, since no schema begins with a digit. */
const channelOf = (teller: Teller): string => `pawl_0${teller}`;

/** An answer to a longer name would be refused by the server, with everything that goes with it. */
const MAX_NAME_LENGTH = 40;

/** The hints of one process, as they travel. */
type HintMessage = { readonly from: Teller; readonly hints: readonly Hint[] };

/** Packs hints into as few messages as the server's limit allows. */
function payloads(from: Teller, hints: Iterable<string>): string[] {
  const head = `{"from":"${from}","hints":[`;
  const tail = "]}";
  const all: string[] = [];
  let list = "";
  let room = 0;
  for (const hint of hints) {
    const bytes = utf8Length(hint) + 1;
    if (bytes > room && list !== "") {
      all.push(head + list + tail);
      list = "";
    }
    if (list === "") room = MAX_PAYLOAD_BYTES - head.length - tail.length + 1;
    list += list === "" ? hint : `,${hint}`;
    room -= bytes;
  }
  return list === "" ? all : [...all, head + list + tail];
}

/** Reads a message, leaving out what another version or another program may have sent. */
function messageFrom(payload: string | undefined): HintMessage {
  try {
    const { from, hints } = JSON.parse(payload ?? "") as { from?: unknown; hints?: unknown };
    if (typeof from === "string" && from.length <= MAX_NAME_LENGTH && Array.isArray(hints)) {
      return { from, hints: hints.filter(isHint) };
    }
  } catch {
    // Another program has sent it.
  }
  return { from: "", hints: [] };
}

function isHint(value: unknown): value is Hint {
  const { kind, target } = (value ?? {}) as { kind?: unknown; target?: Partial<Target> };
  if (kind === "due") return true;
  return typeof target?.workflow === "string" && typeof target.id === "string";
}
