// These tests try what clients may do to a server with bodies and connections.
import { connect } from "node:net";
import { defineWorkflow, WorkflowError, type Store } from "pawl";
import { expect, test } from "vitest";
import { z } from "zod";
import { collecting, type LogEntry } from "../scenarios/stage.js";
import { inScope, type Scope } from "../support/scope.js";
import { until } from "../support/until.js";
import { get, post } from "./routes.js";
import { memoryStore, served } from "./server.js";

const workflows = {
  A: defineWorkflow({
    name: "a",
    run: async (_event, step) => void (await step.waitForEvent("wait", { type: "go" })),
  }),
};

const declared = {
  A: defineWorkflow({
    name: "a",
    params: z.looseObject({ n: z.number() }),
    events: { go: z.unknown(), stop: z.unknown() },
    run: () => 1,
  }),
};

function start(scope: Scope, options: object = {}) {
  return served(scope, { workflows, run: false, ...options });
}

async function send(url: string, body: string | Uint8Array<ArrayBuffer>, headers = {}) {
  const response = await fetch(`${url}/workflows/a/instances`, { method: "POST", body, headers });
  return [response.status, await response.json()] as const;
}

test("a body that never ends is cut off at the limit", () =>
  inScope(async (scope) => {
    const { url, pawl } = await start(scope, { limits: { requestMaxBytes: 100_000 } });
    let sent = 0;
    const endless = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 10_000;
        controller.enqueue(new Uint8Array(10_000).fill(0x20));
      },
    });
    const response = await fetch(`${url}/workflows/a/instances`, {
      method: "POST",
      body: endless,
      duplex: "half",
    });
    expect([response.status, await response.json()]).toEqual([
      413,
      {
        code: "PAYLOAD_TOO_LARGE",
        message: "the body has more than 100000 bytes (limits.requestMaxBytes)",
      },
    ]);
    const sentAtAnswer = sent;
    expect(sentAtAnswer).toBeLessThan(50_000_000);
    expect((await send(url, " ".repeat(100_001)))[0]).toBe(413);
    expect((await pawl.list("a")).instances).toEqual([]);
    expect((await send(url, `{}${" ".repeat(99_998)}`))[0]).toBe(200);
  }));

test.each([
  ["invalid JSON", "{", "the body is not JSON"],
  ["an array", "[]", "the body must be an object, got an array"],
  ["null", "null", "the body must be an object, got null"],
  ["an unknown key", '{"parmas":1}', 'the body has no "parmas"; it may have id, params'],
  ["a tagged envelope", '{"$pawl":"Map","value":[]}', 'the body has no "$pawl"'],
  ["invalid UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "the body is not UTF-8"],
  ["10,000 levels", `{"params":${"[".repeat(10_000)}${"]".repeat(10_000)}}`, "levels of nesting"],
  ["10,000 levels, cut off in the middle", "[".repeat(10_000), "levels of nesting"],
  ["1,001 levels", `{"params":${"[".repeat(1_001)}${"]".repeat(1_001)}}`, "levels of nesting"],
  [
    "100,001 keys",
    `{"params":{${Array.from({ length: 100_001 }, (_, i) => `"${i}":0`).join(",")}}}`,
    "the body has more than 100000 keys, arrays and objects (limits.requestMaxKeys)",
  ],
  ["100,001 arrays", `{"params":[${"[],".repeat(100_000)}0]}`, "(limits.requestMaxKeys)"],
  ["a malformed tag", '{"params":{"$pawl":"Date","value":"soon"}}', "a malformed Date"],
  ["an unknown tag", '{"params":{"$pawl":"Function"}}', "the unknown type"],
  ["a number as id", '{"id":5}', "instance id must be a string, got 5"],
  ["a path as id", '{"id":"../x"}', "instance id may only have letters"],
] as const)("refuses a body: %s", (_what, body, message) =>
  inScope(async (scope) => {
    const { url, pawl } = await start(scope);
    const [status, answer] = await send(url, body);
    expect([status, answer]).toEqual([
      400,
      { code: expect.stringMatching(/^INVALID_/), message: expect.stringContaining(message) },
    ]);
    expect((await pawl.list("a")).instances).toEqual([]);
  }),
);

test.each([
  [
    "/workflows/a/instances?stauts=running&pageSize=1",
    'the query has no "stauts"; this route takes status, order, pageSize, cursor',
  ],
  [
    "/workflows/a/instances/x/history?run=1",
    'the query has no "run"; this route takes runNumber, pageSize, cursor',
  ],
  ["/workflows?", null],
  ["/workflows?x", 'the query has no "x"; this route takes no query'],
])("a query that the route does not take is refused: %s", (path, message) =>
  inScope(async (scope) => {
    const { url } = await start(scope);
    const [status, answer] = await get(url + path);
    if (message === null) expect(status).toBe(200);
    else expect([status, answer]).toEqual([400, { code: "INVALID_REQUEST", message }]);
  }),
);

test.each([
  ["INVALID_INSTANCE_ID", { id: "a b" }, "instances[2].id may only have letters"],
  ["INVALID_INSTANCE_ID", { params: 1 }, "instances[2].id must be a string, got undefined"],
  ["INVALID_PARAMS", { id: "c", params: { $pawl: "Date" } }, "instances[2].params: "],
  ["INVALID_PARAMS", { id: "c", params: { n: "1" } }, "instances[2].params: n: "],
  [
    "PAYLOAD_TOO_LARGE",
    { id: "c", params: { n: 1, x: "x".repeat(99) } },
    "instances[2].params: the encoded value has",
  ],
  ["INVALID_REQUEST", 7, "the body.instances[2] must be an object, got 7"],
])("a batch is refused because of its bad element: %s", (code, bad, message) =>
  inScope(async (scope) => {
    const limits = { paramsMaxBytes: 50 };
    const { url, pawl } = await start(scope, { workflows: declared, limits });
    const fine = [
      { id: "a", params: { n: 1 } },
      { id: "b", params: { n: 2 } },
    ];
    const [, answer] = await post(`${url}/workflows/a/instances/batch`, {
      instances: [...fine, bad],
    });
    expect(answer).toEqual({ code, message: expect.stringContaining(message) });
    expect((await pawl.list("a")).instances).toEqual([]);
  }),
);

test("an event of an undeclared type is refused", () =>
  inScope(async (scope) => {
    const { url } = await start(scope, { workflows: declared });
    await post(`${url}/workflows/a/instances`, { id: "x", params: { n: 1 } });
    expect(await post(`${url}/workflows/a/instances/x/events`, { type: "went" })).toEqual([
      400,
      {
        code: "INVALID_EVENT_TYPE",
        message: 'workflow "a" has no event "went"; it declares go, stop',
      },
    ]);
    const [, { entries }] = await get(`${url}/workflows/a/instances/x/history`);
    expect(entries).toEqual([]);
  }));

test("values that look dangerous are treated as data", () =>
  inScope(async (scope) => {
    const { url, pawl } = await start(scope, { tick: { enabled: true, insecure: true } });
    const params = `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"lone":"\\ud800","nul":"\\u0000","$$pawl":1,"big":1e400}`;
    expect((await send(url, `{"id":"x","params":${params}}`))[0]).toBe(200);
    expect((await send(url, `{"id":"y","params":${"[".repeat(999)}${"]".repeat(999)}}`))[0]).toBe(
      200,
    );
    expect(
      (await post(`${url}/workflows/a/instances/x/events`, { type: "go", payload: 1 }))[0],
    ).toBe(200);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    await post(`${url}/_runner/tick`);
    expect((await pawl.workflows.A.get("x").then((i) => i.status())).status).toBe("complete");
    expect((await get(`${url}/workflows/a/instances/x/history`))[0]).toBe(200);
  }));

test("a body that was already read is refused", () =>
  inScope(async (scope) => {
    const { pawl } = await start(scope);
    const url = "http://localhost/api/workflows/a/instances";
    const request = () => new Request(url, { method: "POST", body: "{}" });
    const read = request();
    await read.text();
    const locked = request();
    locked.body!.getReader();
    for (const given of [read, locked]) {
      const response = await pawl.fetch(given);
      expect([response.status, await response.json()]).toEqual([
        400,
        { code: "INVALID_REQUEST", message: expect.stringContaining("the body was already read") },
      ]);
    }
    const cloned = request();
    const rest = cloned.clone();
    await cloned.text();
    expect((await pawl.fetch(rest)).status).toBe(200);
  }));

test("a body from a browser must be declared as JSON", () =>
  inScope(async (scope) => {
    const { url } = await start(scope);
    const origin = { origin: "https://evil.example" };
    expect((await send(url, "{}", origin))[0]).toBe(400);
    expect(
      (await send(url, "{}", { ...origin, "content-type": "text/plain;application/json" }))[0],
    ).toBe(400);
    expect(
      (await send(url, "{}", { ...origin, "content-type": "application/json; charset=utf-8" }))[0],
    ).toBe(200);
    expect((await send(url, "{}"))[0]).toBe(200);
  }));

test("clients that go away in the middle of a body or an answer do no harm", () =>
  inScope(async (scope) => {
    const { url, pawl } = await start(scope);
    const { port, hostname } = new URL(url);
    const head =
      "POST /api/workflows/a/instances HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n";
    for (let i = 0; i < 20; i++) {
      await new Promise<void>((resolve) => {
        const socket = connect(Number(port), hostname, () => {
          socket.write(`${head}{"id":"gone"`, () =>
            i % 2 === 0 ? socket.destroy() : socket.end(),
          );
        });
        socket
          .on("close", () => resolve())
          .on("error", () => {})
          .resume();
      });
    }
    await pawl.workflows.A.create({ id: "x" });
    for (let i = 0; i < 20; i++) {
      const gone = new AbortController();
      const stream = await fetch(`${url}/workflows/a/instances/x/events-stream`, {
        signal: gone.signal,
      });
      await stream.body!.getReader().read();
      gone.abort();
    }
    expect((await get(`${url}/workflows/a/instances`))[1].instances).toMatchObject([{ id: "x" }]);
  }));

test.each([
  [
    "a store that is away",
    new WorkflowError("STORE_UNAVAILABLE", "SELECT secret", { cause: new Error("at 10.0.0.1") }),
    [503, { code: "STORE_UNAVAILABLE", message: "the database is busy or away: try again" }],
  ],
  [
    "a bug",
    new Error("SELECT secret FROM password"),
    [
      500,
      { code: "INTERNAL_ERROR", message: "something went wrong here; the server's log says what" },
    ],
  ],
])("%s is logged, and the client learns little of it", (_what, failure, answer) =>
  inScope(async (scope) => {
    const logs: LogEntry[] = [];
    const store: Store = { ...memoryStore(scope), list: () => Promise.reject(failure) };
    const { url } = await start(scope, { store, logger: collecting(logs) });
    expect(await get(`${url}/workflows/a/instances`)).toEqual(answer);
    const fields = { route: "/workflows/:workflowName/instances", error: String(failure) };
    expect(logs).toEqual([{ level: "error", event: "http.failed", fields }]);
  }),
);

test("answers 503 before a migration", () =>
  inScope(async (scope) => {
    const store = memoryStore(scope);
    const { url } = await start(scope, { store: { ...store, migrate: async () => {} } });
    const response = await fetch(`${url}/workflows/a/instances`);
    expect([response.status, response.headers.get("retry-after"), await response.json()]).toEqual([
      503,
      "1",
      { code: "STORE_UNAVAILABLE", message: "the database is busy or away: try again" },
    ]);
  }));

test("all watchers of an instance share one poll", () =>
  inScope(async (scope) => {
    const store = memoryStore(scope);
    let reads = 0;
    const counted: Store = {
      ...store,
      history: (...given) => {
        reads += 1;
        return store.history(...given);
      },
    };
    const { url, pawl } = await start(scope, { store: counted });
    await pawl.workflows.A.create({ id: "x" });
    const gone = new AbortController();
    const readers = await Promise.all(
      Array.from({ length: 30 }, async () => {
        const stream = `${url}/workflows/a/instances/x/events-stream`;
        const { body } = await fetch(stream, { signal: gone.signal });
        const reader = body!.getReader();
        expect(new TextDecoder().decode((await reader.read()).value)).toContain('"queued"');
        return reader;
      }),
    );
    // The watchers join together or one by one. From then on they share one poll, ever more rarely.
    const joined = reads;
    const since = performance.now();
    const terminated = Promise.all(readers.map((reader) => reader.read()));
    await until(() => reads >= joined + 2, "a look by itself");
    const looks = reads - joined;
    expect(looks).toBeLessThanOrEqual((performance.now() - since) / 100 + 3);
    await (await pawl.workflows.A.get("x")).terminate();
    for (const { value } of await terminated) {
      expect(new TextDecoder().decode(value)).toContain('"terminated"');
    }
    gone.abort();
  }));

test("a stream requested while or after the engine closes is told to come again", () =>
  inScope(async (scope) => {
    const store = memoryStore(scope);
    let reading = (): void => {};
    let goOn = (): void => {};
    const held = new Promise<void>((resolve) => (goOn = resolve));
    let isHolding = false;
    const slow: Store = {
      ...store,
      history: async (...given) => {
        if (isHolding) {
          reading();
          await held;
        }
        return store.history(...given);
      },
      // Only the engine closes here. Its store closes later.
      close: async () => {},
    };
    const { url, pawl } = await start(scope, { store: slow });
    await pawl.workflows.A.create({ id: "x" });
    const stream = `${url}/workflows/a/instances/x/events-stream`;
    const { body } = await fetch(stream);
    const reader = body!.getReader();
    const [, cursor] = /^id: (.*)$/m.exec(new TextDecoder().decode((await reader.read()).value))!;
    await reader.cancel();
    const ask = async (accept = "*/*") => {
      const response = await fetch(stream, { headers: { accept, "last-event-id": cursor! } });
      return [response.status, response.headers.get("retry-after"), await response.text()];
    };
    const away = [503, "1", expect.stringContaining("STORE_UNAVAILABLE")];
    // An EventSource gives up after a 503.
    const comeAgain = [200, null, "retry: 1000\n\n"];

    isHolding = true;
    const isReading = new Promise<void>((resolve) => (reading = resolve));
    const during = Promise.all([ask(), ask("text/event-stream")]);
    await isReading;
    const closing = pawl.close();
    goOn();
    expect(await during).toEqual([away, comeAgain]);
    await closing;
    expect(await ask()).toEqual(away);
    expect(await ask("text/event-stream")).toEqual(comeAgain);
  }));
