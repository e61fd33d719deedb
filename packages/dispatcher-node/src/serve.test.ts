import { once } from "node:events";
import { connect } from "node:net";
import { Agent, request as httpRequest } from "node:http";
import { describe, expect, onTestFinished, test } from "vitest";
import { createWorkflows, defineWorkflow } from "pawl";
import { sqliteStore } from "pawl/sqlite";
import { drainOnSignals } from "./drain-on-signals.js";
import { openSqlite } from "./open-sqlite.js";
import { serve, type Served } from "./serve.js";

type Answer = (request: Request) => Response | Promise<Response>;

async function serving(fetch: Answer, more: Partial<Served> = {}) {
  const server = await serve({ fetch, ...more }, { port: 0 });
  onTestFinished(() => server.close({ timeoutMs: 0 }));
  return server;
}

function gate() {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { open, passed };
}

/** Fails instead of hanging. */
function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(ms);
  return Promise.race([
    work,
    once(late, "abort").then(() => {
      throw new Error(`not within ${ms} ms`);
    }),
  ]);
}

const stream = (start: (controller: ReadableStreamDefaultController<Uint8Array>) => void) =>
  new Response(new ReadableStream<Uint8Array>({ start }), {
    headers: { "content-type": "text/event-stream" },
  });
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("serve", () => {
  test("serves Pawl's HTTP API, and ends its event streams on close", async () => {
    const handle = openSqlite(":memory:");
    const workflows = { HELLO: defineWorkflow({ name: "hello", run: async () => "hello" }) };
    const pawl = createWorkflows({ workflows, store: sqliteStore(handle) });
    await pawl.migrate();
    const server = await serve(pawl, { port: 0 });
    const api = `${server.url}/api/workflows/hello/instances`;
    const created = await fetch(api, { method: "POST", body: '{"id":"a"}' });
    expect(created.ok).toBe(true);
    const answer = await fetch(`${api}/a/events-stream`);
    const text = answer.text();
    await within(3_000, server.close({ timeoutMs: 60_000 }));
    expect(await text).toContain('"queued"');
    await pawl.close();
    handle.close();
  });

  test("passes on method, path, headers and body of a request, and returns the answer", async () => {
    const { url } = await serving(async (request) =>
      Response.json({
        method: request.method,
        path: new URL(request.url).pathname,
        header: request.headers.get("x-test"),
        body: await request.text(),
      }),
    );
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const init = { method: "POST", body: "hello", headers: { "x-test": "yes" } };
    const answer = await fetch(`${url}/a/b%20c`, init);
    expect(await answer.json()).toEqual({
      method: "POST",
      path: "/a/b%20c",
      header: "yes",
      body: "hello",
    });
  });

  test("leaves the application's globals alone", async () => {
    const before = [globalThis.Request, globalThis.Response];
    await serving(() => new Response("ok"));
    expect([globalThis.Request, globalThis.Response]).toEqual(before);
  });

  test("explains a taken port, an invalid port and an unknown option", async () => {
    const { url } = await serving(() => new Response("ok"));
    const port = Number(new URL(url).port);
    const again = serve({ fetch: () => new Response() }, { port });
    await expect(again).rejects.toThrow(
      `serve: cannot listen on 127.0.0.1, port ${port}: something else listens there`,
    );
    await expect(again).rejects.toMatchObject({ code: "EADDRINUSE" });
    for (const wrong of [-1, 65_536, 1.5, Number.NaN]) {
      await expect(serve({ fetch: () => new Response() }, { port: wrong })).rejects.toThrow(
        "serve: port must be a whole number from 0 to 65535",
      );
    }
    const misspelt = { port: 0, hostname: "0.0.0.0" };
    await expect(serve({ fetch: () => new Response() }, misspelt)).rejects.toThrow(
      'serve: unknown option "hostname"; the options are port, host',
    );
  });

  test("aborts the request of a client that goes away", async () => {
    const arrived = gate();
    const aborted = gate();
    const { url } = await serving(async ({ signal }) => {
      arrived.open();
      await once(signal, "abort");
      aborted.open();
      return new Response();
    });
    const client = new AbortController();
    const answer = fetch(url, { signal: client.signal });
    await arrived.passed;
    client.abort();
    await expect(answer).rejects.toThrow("aborted");
    await within(5_000, aborted.passed);
  });

  test("cancels an event stream that its client leaves", async () => {
    const cancelled = gate();
    const { url } = await serving(
      () =>
        new Response(
          new ReadableStream<Uint8Array>({
            start: (controller) => controller.enqueue(bytes("data: 1\n\n")),
            cancel: () => cancelled.open(),
          }),
          { headers: { "content-type": "text/event-stream" } },
        ),
    );
    const client = new AbortController();
    const answer = await fetch(url, { signal: client.signal });
    const reader = answer.body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("data: 1\n\n");
    client.abort();
    await within(5_000, cancelled.passed);
  });

  test("logs an error of the handler, and does not tell the client", async () => {
    const logged: unknown[] = [];
    const log = (...all: unknown[]): void => void logged.push(all);
    const logger = { debug() {}, info() {}, warn() {}, error: log };
    const { url } = await serving(
      () => {
        throw new Error("SELECT secret");
      },
      { runner: { logger } },
    );
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([500, ""]);
    expect(logged).toEqual([["request.failed", { error: "Error: SELECT secret" }]]);
  });

  test("ends a broken event stream without telling the client why", async () => {
    const { url } = await serving(() =>
      stream((controller) => {
        controller.enqueue(bytes("data: 1\n\n"));
        setImmediate(() => controller.error(new Error("SELECT secret")));
      }),
    );
    expect(await (await fetch(url)).text()).not.toContain("SELECT");
  });

  test("refuses a malformed request", async () => {
    const { url } = await serving(() => new Response("ok"));
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.end("GET / HTTP/1.1\r\nHost: a b c\r\n\r\n");
    const [chunk] = (await once(socket, "data")) as [Buffer];
    expect(chunk.toString()).toMatch(/^HTTP\/1\.1 400 /);
    socket.destroy();
  });

  test("waits on close for a request that is being answered, and accepts no more", async () => {
    const arrived = gate();
    const held = gate();
    const server = await serving(async () => {
      arrived.open();
      await held.passed;
      return new Response("ok");
    });
    const answer = fetch(server.url);
    await arrived.passed;
    let isClosed = false;
    const closed = server.close().then(() => (isClosed = true));
    await expect(fetch(server.url)).rejects.toThrow("fetch failed");
    expect(isClosed).toBe(false);
    held.open();
    expect(await (await answer).text()).toBe("ok");
    await within(3_000, closed);
  });

  test("does not wait on close for kept-alive connections, opened before or after it", async () => {
    const arrived = gate();
    const held = gate();
    const server = await serving(async (request) => {
      if (request.url.endsWith("/held")) {
        arrived.open();
        await held.passed;
      }
      return new Response("ok");
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 2 });
    onTestFinished(() => agent.destroy());
    const get = async (path: string): Promise<void> => {
      const [response] = await once(httpRequest(server.url + path, { agent }).end(), "response");
      response.resume();
      await once(response, "end");
    };
    await get("/");
    const last = get("/held");
    await arrived.passed;
    const closed = server.close({ timeoutMs: 60_000 });
    held.open();
    await last;
    await within(3_000, closed);
  });

  test("cuts off on close what outlasts the timeout", async () => {
    const arrived = gate();
    const server = await serving(async () => {
      arrived.open();
      return new Promise<Response>(() => {});
    });
    const answer = fetch(server.url);
    answer.catch(() => {});
    await arrived.passed;
    await within(3_000, server.close({ timeoutMs: 20 }));
    await expect(answer).rejects.toThrow("fetch failed");
  });

  test("refuses to close with an invalid timeout", async () => {
    const server = await serving(() => new Response("ok"));
    for (const timeoutMs of [Infinity, Number.NaN, -1, 2 ** 31]) {
      await expect(server.close({ timeoutMs })).rejects.toThrow(
        "close: timeoutMs must be a whole number from 0 to 2147483647",
      );
    }
    expect(await (await fetch(server.url)).text()).toBe("ok");
    const drain = () => drainOnSignals([server], { timeoutMs: Infinity });
    expect(drain).toThrow("drainOnSignals: timeoutMs must be a whole number from 0 to 2147483647");
  });

  test("ends event streams on close, properly and at once", async () => {
    const server = await serving(() =>
      stream((controller) => controller.enqueue(bytes("data: 1\n\n"))),
    );
    const answer = await fetch(server.url);
    const text = answer.text();
    await within(3_000, server.close({ timeoutMs: 60_000 }));
    expect(await text).toBe("data: 1\n\n");
  });

  test("listens on the host it is given", async () => {
    const server = await serve({ fetch: () => new Response("ok") }, { port: 0, host: "0.0.0.0" });
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await (await fetch(server.url)).text()).toBe("ok");
    await Promise.all([server.close(), server.close()]);
  });
});
