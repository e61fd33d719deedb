import { contract, type Contract, type Operation, type Route } from "../http/contract.js";
import type { TypeOf } from "../model/schema.js";
import { membersOf, throwIfAborted, type Signal } from "../model/abort.js";
import {
  isWorkflowErrorCode,
  ValidationError,
  WorkflowError,
  workflowErrorStatus,
  type WorkflowErrorCode,
} from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import { quote } from "../model/quote.js";
import type { Runtime } from "../model/seams.js";
import { parseUrl, type WebResponse, type WebUrl } from "../model/web.js";
import type { ClientFetch, ClientOptions } from "./types.js";

const MAX_TRIES = 5;
const FIRST_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 2_000;
const BASE_PATH = "/api";

type Outgoing = {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: Signal | undefined;
};

type AnswerTo<O extends Operation> = Contract[O] extends { readonly response: infer S }
  ? TypeOf<S>
  : never;

/** Sends operations of the contract, and sends them again where that is safe. */
export class Transport {
  readonly runtime: Runtime;
  readonly #base: string;
  readonly #fetch: ClientFetch;
  readonly #headers: ClientOptions["headers"];
  readonly #newId: () => string;

  constructor(options: ClientOptions & { readonly fetch: ClientFetch }, runtime: Runtime) {
    this.runtime = runtime;
    this.#base = baseOf(options);
    this.#fetch = options.fetch;
    this.#headers = options.headers;
    this.#newId = idMaker(runtime);
  }

  /** Makes an id that no other request has. */
  newKey(): string {
    return this.#newId();
  }

  /**
   * Sends an operation, again if need be. Every operation may be sent twice: some only read, of some the second time
   * changes nothing, and the others have an `Idempotency-Key`.
   */
  async call<O extends Operation>(operation: O, outgoing: Outgoing = {}): Promise<AnswerTo<O>> {
    const route: Route = contract[operation];
    const headers = {
      ...(route.method === "GET" ? {} : { "content-type": "application/json" }),
      ...(route.keyed === true ? { "idempotency-key": this.newKey() } : {}),
      ...outgoing.headers,
    };
    for (let tries = 1; ; tries++) {
      try {
        const response = await this.open(operation, { ...outgoing, headers });
        return (await jsonOf(response)) as AnswerTo<O>;
      } catch (error) {
        if (tries === MAX_TRIES || !isAway(error)) throw error;
      }
      await this.#pause(tries, outgoing.signal);
    }
  }

  /** Makes one try. Resolves when the head of the answer is there, and throws if it tells of an error. */
  async open(operation: Operation, outgoing: Outgoing): Promise<WebResponse> {
    const { method, path } = contract[operation];
    throwIfAborted(outgoing.signal);
    const given = typeof this.#headers === "function" ? await this.#headers() : this.#headers;
    let response: WebResponse;
    try {
      response = await this.#fetch(this.#urlOf(path, outgoing), {
        method,
        headers: { accept: "application/json", ...given, ...outgoing.headers },
        ...(outgoing.body === undefined ? {} : { body: JSON.stringify(outgoing.body) }),
        ...(outgoing.signal === undefined ? {} : { signal: outgoing.signal }),
      });
    } catch (error) {
      throwIfAborted(outgoing.signal);
      throw unreachable(error);
    }
    if (!response.ok) throw await errorOf(response);
    return response;
  }

  #urlOf(path: string, { params = {}, query = {} }: Outgoing): string {
    const filled = path.replaceAll(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(params[name] ?? ""),
    );
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = pairs.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
    return this.#base + filled + (search.length === 0 ? "" : `?${search.join("&")}`);
  }

  /** Waits longer with each failure. It throws at once when the signal fires. */
  async #pause(failures: number, signal: Signal | undefined): Promise<void> {
    const mostMs = Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (failures - 1));
    await this.sleep(mostMs * (0.5 + this.runtime.random.next() / 2), signal);
  }

  sleep(ms: number, signal: Signal | undefined): Promise<void> {
    const abort = signal === undefined ? null : membersOf(signal);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        cancel();
        reject(abort?.reason);
      };
      const cancel = this.runtime.scheduler.after(ms, () => {
        abort?.removeEventListener("abort", onAbort);
        resolve();
      });
      abort?.addEventListener("abort", onAbort);
      if (abort?.aborted === true) onAbort();
    });
  }
}

export function isAway(error: unknown): boolean {
  return error instanceof WorkflowError && error.code === "STORE_UNAVAILABLE";
}

function unreachable(cause: unknown): WorkflowError {
  return new WorkflowError("STORE_UNAVAILABLE", "the API cannot be reached", { cause });
}

async function jsonOf(response: WebResponse): Promise<unknown> {
  let text: string;
  try {
    text = await response.text();
  } catch (error) {
    throw unreachable(error); // the connection broke
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new WorkflowError("INTERNAL_ERROR", "the answer is not JSON: is baseUrl right?", {
      cause,
    });
  }
}

/** Returns what went wrong: in the API's words or, if somebody else answered, by the status. */
async function errorOf(response: WebResponse): Promise<WorkflowError> {
  const { status } = response;
  try {
    const { code, message } = JSON.parse(await response.text()) as Record<string, unknown>;
    if (isWorkflowErrorCode(code)) return new WorkflowError(code, String(message));
  } catch {
    // The answer is not from this API.
  }
  return new WorkflowError(codeFor(status), `the answer was ${status}: is baseUrl right?`);
}

/** Returns the code for an answer of a gateway or the like, which knows nothing of codes. */
function codeFor(status: number): WorkflowErrorCode {
  if (status === 429 || (status >= 502 && status <= 504)) return "STORE_UNAVAILABLE";
  if (status >= 500) return "INTERNAL_ERROR";
  const general = ["NOT_FOUND", "UNAUTHORIZED", "FORBIDDEN", "PAYLOAD_TOO_LARGE"] as const;
  return general.find((code) => workflowErrorStatus[code] === status) ?? "INVALID_REQUEST";
}

function baseOf({ baseUrl, basePath = BASE_PATH }: ClientOptions): string {
  checkBaseUrl(baseUrl);
  if (typeof basePath !== "string" || !/^(\/[^?#\s]*)?$/.test(basePath)) {
    throw new ValidationError(`basePath must be a path such as "/api", got ${quote(basePath)}`);
  }
  const trimmed = baseUrl.replace(/\/+$/, "");
  return /^[a-z]+:\/\/[^/]+$/i.test(trimmed) ? trimmed + basePath.replace(/\/+$/, "") : trimmed;
}

/** Refuses a wrong address. Each request would otherwise fail as if the API were away. */
function checkBaseUrl(given: unknown): void {
  if (typeof given !== "string") {
    throw new ValidationError(`baseUrl must be a string, got ${quote(given)}`);
  }
  // The runtime's own message could show a password.
  const url = parsed(given);
  if (url === null) {
    throw new ValidationError(
      'baseUrl must begin with http:// or https:// and a host, or be a path such as "/api" in a browser',
    );
  }
  if (url.username !== "" || url.password !== "") {
    throw new ValidationError("baseUrl must not hold a password; that is what headers are for");
  }
  if (/[?#]/.test(given)) throw new ValidationError("baseUrl must not have a query or a hash");
}

function parsed(given: string): WebUrl | null {
  if (!/^(https?:\/)?\/\S*$/i.test(given)) return null;
  try {
    return parseUrl(given.startsWith("/") ? `http://localhost${given}` : given);
  } catch {
    return null;
  }
}
