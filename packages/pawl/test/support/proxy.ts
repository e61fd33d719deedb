import { createServer, connect, type AddressInfo, type Server, type Socket } from "node:net";
import type { Scope } from "./scope.js";
import type { Kind } from "./servers.js";

/** Counts the whole messages in a stream of bytes. */
type Counter = (chunk: Buffer) => number;

/**
 * A line between a store and its server that breaks where it is told to: after the server has read a request
 * and before its answer comes back, or before the request gets there.
 */
export type Proxy = {
  readonly url: string;
  /**
   * Breaks the line at the n-th request, or at its reply, counted from now over all connections. The next
   * connection gets through when `meanwhile` is over.
   */
  cut(
    at: "request" | "reply",
    n: number,
    meanwhile?: () => Promise<unknown>,
  ): { readonly happened: boolean };
  /** From now on accepts connections and everything sent on them, and passes nothing on. */
  fallSilent(): void;
  /** Ends all connections, and accepts no more. */
  close(): void;
};

export async function proxy(scope: Scope, kind: Kind, serverUrl: string): Promise<Proxy> {
  const target = new URL(serverUrl);
  const open = new Set<Socket>();
  let cut:
    | {
        readonly at: "request" | "reply";
        left: number;
        happened: boolean;
        readonly meanwhile: (() => Promise<unknown>) | undefined;
      }
    | undefined;
  let mended: Promise<unknown> = Promise.resolve();
  let silent = false;

  /** Returns true if the line breaks here. */
  const breaksAt = (at: "request" | "reply", messages: number): boolean => {
    if (cut === undefined || cut.happened || cut.at !== at) return false;
    cut.left -= messages;
    cut.happened = cut.left <= 0;
    if (cut.happened) mended = Promise.resolve(cut.meanwhile?.());
    return cut.happened;
  };

  const server = createServer((client) => {
    client.on("error", () => client.destroy());
    void mended.then(() => join(client));
  });
  const join = (client: Socket): void => {
    const upstream = connect(Number(target.port), target.hostname);
    const requests = kind === "postgres" ? postgresRequests() : mysqlPackets(0);
    const replies = kind === "postgres" ? postgresReplies() : mysqlPackets(1);
    const breakLine = (): void => {
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      open.add(socket);
      socket.setNoDelay(true);
      socket.on("error", breakLine);
      socket.on("close", () => {
        open.delete(socket);
        breakLine();
      });
    }
    client.on("data", (chunk) => {
      if (silent) return;
      if (breaksAt("request", requests(chunk))) breakLine();
      else upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (silent) return;
      if (breaksAt("reply", replies(chunk))) breakLine();
      else client.write(chunk);
    });
  };
  await listening(server);
  const close = (): void => {
    for (const socket of open) socket.destroy();
    server.close();
  };
  scope.defer(close);

  const url = new URL(serverUrl);
  url.port = String((server.address() as AddressInfo).port);
  return {
    url: url.href,
    cut: (at, n, meanwhile) => (cut = { at, left: n, happened: false, meanwhile }),
    fallSilent: () => void (silent = true),
    close,
  };
}

function listening(server: Server): Promise<void> {
  return new Promise((resolve) => void server.listen(0, "127.0.0.1", resolve));
}

/** Counts messages of one byte of type and four of length. Only a client's first message has no type. */
function postgresMessages(counted: string, first: "typed" | "untyped"): Counter {
  let held: Buffer = Buffer.alloc(0);
  let header = first === "typed" ? 1 : 0;
  return (chunk) => {
    held = Buffer.concat([held, chunk]);
    let count = 0;
    while (held.length >= header + 4) {
      const length = header + held.readUInt32BE(header);
      if (held.length < length) break;
      if (header === 1 && counted.includes(String.fromCharCode(held[0]!))) count += 1;
      held = held.subarray(length);
      header = 1;
    }
    return count;
  };
}

/** Sync and simple Query end a request, and ReadyForQuery ends its reply. */
const postgresRequests = (): Counter => postgresMessages("SQ", "untyped");
const postgresReplies = (): Counter => postgresMessages("Z", "typed");

/** Counts packets of three bytes of length and one of number: 0 begins a command, 1 its reply. */
function mysqlPackets(counted: 0 | 1): Counter {
  let held: Buffer = Buffer.alloc(0);
  return (chunk) => {
    held = Buffer.concat([held, chunk]);
    let count = 0;
    while (held.length >= 4) {
      const length = 4 + held.readUIntLE(0, 3);
      if (held.length < length) break;
      if (held[3] === counted) count += 1;
      held = held.subarray(length);
    }
    return count;
  };
}
