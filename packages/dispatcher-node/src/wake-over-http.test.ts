import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createWorkflows, defineWorkflow, type Logger, type WorkflowEnqueued } from "pawl";
import { bearerToken } from "pawl/auth";
import { sqliteStore } from "pawl/sqlite";
import { describe, expect, onTestFinished, test } from "vitest";
import { openSqlite } from "./open-sqlite.js";
import { serve } from "./serve.js";
import { wakeOverHttp } from "./wake-over-http.js";

const token = "a-token-of-twenty-four-bytes";
const workflows = { HELLO: defineWorkflow({ name: "hello", run: async () => "hello" }) };
const happened: WorkflowEnqueued = {
  id: "1",
  workflowName: "hello",
  instanceId: "a",
  runNumber: 1,
  reason: "create",
  happenedAt: new Date(0),
};
const delivery = (signal = new AbortController().signal) => ({ attempt: 1, signal });

/** Two hosts on one database file: one that runs only when it is called, and one that only creates. */
async function hosts(given: string) {
  const folder = mkdtempSync(path.join(tmpdir(), "pawl-wake-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const open = () => {
    const handle = openSqlite(path.join(folder, "pawl.db"));
    onTestFinished(() => void handle.close());
    return sqliteStore(handle);
  };
  const remote = createWorkflows({
    workflows,
    store: open(),
    tick: { enabled: true },
    authorize: { tick: bearerToken(token) },
  });
  await remote.migrate();
  const server = await serve(remote, { port: 0 });
  const logged: string[] = [];
  const log = (event: string, fields: object = {}) =>
    void logged.push(JSON.stringify([event, fields]));
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const local = createWorkflows({
    workflows,
    store: open(),
    logger,
    hooks: {
      onWorkflowEnqueued: wakeOverHttp({ url: `${server.url}/api/_runner/tick`, token: given }),
    },
  });
  onTestFinished(async () => {
    await local.close();
    await server.close({ timeoutMs: 0 });
    await remote.close();
  });
  return { local, logged };
}

/** A server that answers like this, and records its requests. */
async function answering(status: number, headers: Record<string, string> = {}) {
  const seen: { authorization: string | undefined; path: string | undefined }[] = [];
  const server = createServer((request, response) => {
    seen.push({ authorization: request.headers.authorization, path: request.url });
    if (status > 0) response.writeHead(status, headers).end("secret details");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/tick`, seen };
}

describe("wakeOverHttp", () => {
  test("makes a host without a process run what another one creates", async () => {
    const { local } = await hosts(token);
    const instance = await local.workflows.HELLO.create();
    expect(await instance.result({ timeout: "20 seconds" })).toBe("hello");
  });

  test("is tried again after a wrong token, which the log does not show", async () => {
    const wrong = "not-the-token-of-that-host";
    const { local, logged } = await hosts(wrong);
    await local.workflows.HELLO.create();
    await expect.poll(() => logged.join(), { timeout: 10_000 }).toContain("answered 401");
    expect(logged.join()).toContain("retryInMs");
    expect(logged.join()).not.toContain(wrong);
  });

  test.each([401, 404, 429, 500, 503])("throws for an answer of %i", async (status) => {
    const { url } = await answering(status);
    const wake = wakeOverHttp({ url, token });
    await expect(wake(happened, delivery())).rejects.toThrow(`answered ${status}`);
  });

  test("follows no redirect", async () => {
    const elsewhere = await answering(200);
    const { url, seen } = await answering(307, { location: elsewhere.url });
    await expect(wakeOverHttp({ url, token })(happened, delivery())).rejects.toThrow("307");
    expect(seen).toEqual([{ authorization: `Bearer ${token}`, path: "/tick" }]);
    expect(elsewhere.seen).toEqual([]);
  });

  test("gives up after its timeout, and when its signal fires", async () => {
    const { url } = await answering(0);
    await expect(
      wakeOverHttp({ url, token, timeoutMs: 50 })(happened, delivery()),
    ).rejects.toMatchObject({ name: "TimeoutError" });
    const aborter = new AbortController();
    const waking = wakeOverHttp({ url, token })(happened, delivery(aborter.signal));
    aborter.abort(new Error("the process stops"));
    await expect(waking).rejects.toThrow("the process stops");
  });

  test("fails without showing the token if nobody listens at the address", async () => {
    const wake = wakeOverHttp({ url: "http://127.0.0.1:9/tick", token });
    const error = await wake(happened, delivery()).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(JSON.stringify(error, Object.getOwnPropertyNames(error))).not.toContain(token);
  });

  test.each([
    [{ url: "tick", token }, "url is no URL"],
    [{ url: "file:///tick", token }, "must begin with http: or https:"],
    [{ url: "http://me:hunter2@127.0.0.1/tick", token }, "must not hold a password"],
    [{ url: "http://127.0.0.1/", token: "" }, "token must be"],
    [{ url: "http://127.0.0.1/", token: "hunter2\r\nx: y" }, "token must be"],
    [{ url: "http://127.0.0.1/", token, timeoutMs: 0 }, "timeoutMs must be"],
    [{ url: "http://127.0.0.1/", token, timeoutMs: Infinity }, "from 1 to 2147483647"],
    [{ url: "http://127.0.0.1/", token, timeoutMs: 2 ** 31 }, "from 1 to 2147483647"],
  ])("refuses %j", (options, message) => {
    expect(() => wakeOverHttp(options)).toThrow(message);
    expect(() => wakeOverHttp(options)).not.toThrow("hunter2");
  });
});
