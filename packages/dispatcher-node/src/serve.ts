import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { checkOptions, ValidationError, type Known, type Logger } from "pawl";
import { endable, Ending } from "./endable.js";
import { checkTimeout } from "./timeout.js";

export type ServeOptions = {
  /** The port to listen on. 0 takes any free port; `url` tells which. */
  readonly port: number;
  /**
   * The address to listen on. Default 127.0.0.1, this machine only; `0.0.0.0` and `::` take requests from everywhere.
   */
  readonly host?: string | undefined;
};

export type CloseOptions = {
  /** How long requests that are being answered may take, in milliseconds. Default 10 seconds. Then they are cut off. */
  readonly timeoutMs?: number | undefined;
};

/** A server that listens. */
export interface RunningServer {
  /** The URL at which it listens, such as `http://127.0.0.1:3000`. */
  readonly url: string;
  /**
   * Takes no more requests, ends event streams and idle connections at once, and resolves when the requests that are
   * being answered have ended.
   */
  close(options?: CloseOptions): Promise<void>;
}

/** Anything that answers web-standard requests: what `createWorkflows` returns, a Hono app with Pawl mounted in it … */
export interface Served {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  /** Its logger is told of a `fetch` that throws. */
  readonly runner?: { readonly logger: Logger };
}

const serveOptions: Known<ServeOptions> = { port: true, host: true };

const HOST = "127.0.0.1";
const MAX_PORT = 65_535;
const CLOSE_MS = 10_000;

/**
 * Starts an HTTP server around `fetch`, and resolves when it listens. Rejects with an error that says why if it cannot
 * listen, and with `ValidationError` for an option that is not allowed. If `fetch` throws, the client gets a bare 500
 * and the log says `request.failed`.
 *
 * @example
 * ```ts
 * const server = await serve(pawl, { port: 3000 });
 * ```
 */
export async function serve(served: Served, options: ServeOptions): Promise<RunningServer> {
  const { port, host = HOST } = checkOptions("serve", options, serveOptions);
  if (!Number.isInteger(port) || port < 0 || port > MAX_PORT) {
    throw new ValidationError(`serve: port must be a whole number from 0 to ${MAX_PORT}`);
  }
  const ending = new Ending();
  const answer = getRequestListener(
    async (request) => endable(await served.fetch(request), ending),
    {
      // The globals belong to the application.
      overrideGlobalObjects: false,
      errorHandler: (error) => failed(error, served.runner?.logger),
    },
  );
  const server = createServer((request, response) => {
    response.once("close", () => {
      if (!server.listening) setImmediate(() => server.closeIdleConnections());
    });
    void answer(request, response);
  });
  await listening(server, port, host);
  let closing: Promise<void> | null = null;
  return {
    url: urlOf(server.address() as AddressInfo),
    close: async ({ timeoutMs = CLOSE_MS } = {}) => {
      checkTimeout("close", timeoutMs);
      await (closing ??= close(server, ending, timeoutMs));
    },
  };
}

/** Answers a request whose `fetch` threw. The client learns that it failed, and nothing else. */
function failed(error: unknown, logger: Logger | undefined): Response {
  // The adapter throws this for a request that is malformed, such as one with an impossible Host.
  if (error instanceof Error && error.name === "RequestError") {
    return Response.json({ code: "INVALID_REQUEST", message: "not a request" }, { status: 400 });
  }
  logger?.error("request.failed", { error: String(error) });
  return new Response(null, { status: 500 });
}

function listening(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      reject(explained(error, port, host));
    });
    server.listen(port, host, () => {
      server.removeAllListeners("error");
      resolve();
    });
  });
}

function explained(error: NodeJS.ErrnoException, port: number, host: string): Error {
  const why =
    {
      EADDRINUSE:
        "something else listens there; stop it, or choose another port (0 for a free one)",
      EACCES: "this user may not listen there; ports below 1024 need more rights",
      EADDRNOTAVAIL: "this machine does not have that address",
      ENOTFOUND: "this host is not known",
    }[error.code ?? ""] ?? error.message;
  const message = `serve: cannot listen on ${host}, port ${port}: ${why}`;
  return Object.assign(new Error(message, { cause: error }), { code: error.code });
}

function urlOf({ address, family, port }: AddressInfo): string {
  const everywhere = { "0.0.0.0": "127.0.0.1", "::": "::1" }[address];
  const host = everywhere ?? address;
  return `http://${family === "IPv6" ? `[${host}]` : host}:${port}`;
}

async function close(server: Server, ending: Ending, timeoutMs: number): Promise<void> {
  const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
  ending.end();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), timeoutMs);
  await closed;
  clearTimeout(timer);
}
