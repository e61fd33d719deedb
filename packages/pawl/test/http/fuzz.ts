// Hostile requests over a real connection never get a 5xx, never hang, and only get answers that the contract
// knows.
import { request } from "node:http";
import fc from "fast-check";
import { defineWorkflow } from "pawl";
import { expect, test } from "vitest";
import { inScope } from "../support/scope.js";
import { expectAnswerOf, expectError, isRequestOf, routes } from "./answers.js";
import { get, type OpenStore } from "./routes.js";
import { served } from "./server.js";

const ANSWER_WITHIN_MS = 20_000;

const workflows = {
  A: defineWorkflow({
    name: "a",
    run: async (_event, step) => void (await step.waitForEvent("wait", { type: "go" })),
  }),
};

const hostileText = fc.oneof(
  fc.constantFrom(
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "$pawl",
    "$$pawl",
    "\ud800",
    "\u0000",
    "\u202e",
    "%2f",
    "%00",
    "..",
    "%2e%2e",
    "a".repeat(5_000),
    "'; DROP TABLE pawl_instance; --",
    "1e400",
    "-0",
    "💥",
    "x",
    "go",
    "a",
  ),
  fc.string({ maxLength: 30, unit: "binary" }),
);

const hostileNumber = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(0, -1, 1e308, 2 ** 53, 2 ** 31, 100, 101),
);

const { json: hostileJson } = fc.letrec((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false),
    hostileNumber,
    hostileText,
    fc.array(tie("json"), { maxLength: 4 }),
    fc.dictionary(hostileText, tie("json"), { maxKeys: 4 }),
    fc.record({
      $pawl: fc.oneof(
        hostileText,
        fc.constantFrom(
          "Date",
          "Map",
          "Set",
          "Error",
          "bigint",
          "number",
          "Uint8Array",
          "undefined",
        ),
      ),
      value: tie("json"),
    }),
  ),
}));

/** Bodies near the contract's, so that more than the first check is reached. */
const nearBody = fc.oneof(
  fc.record({ id: hostileText, params: hostileJson }, { requiredKeys: [] }),
  fc.record(
    {
      instances: fc.oneof(
        hostileJson,
        fc.array(fc.record({ id: hostileText, params: hostileJson }, { requiredKeys: [] }), {
          maxLength: 3,
        }),
      ),
    },
    { requiredKeys: [] },
  ),
  fc.record(
    { type: hostileText, payload: hostileJson, id: hostileText },
    { requiredKeys: ["type"] },
  ),
  fc.record({ maxInstances: hostileNumber, maxSteps: hostileNumber }, { requiredKeys: [] }),
);

const rawBody = fc.oneof(
  { weight: 6, arbitrary: nearBody.map((json) => JSON.stringify(json)) },
  { weight: 2, arbitrary: hostileJson.map((json) => JSON.stringify(json)) },
  { weight: 1, arbitrary: fc.string({ maxLength: 50, unit: "binary" }) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      `{"params":${"[".repeat(10_000)}${"]".repeat(10_000)}}`,
      '{"params":1e400}',
      '{"id":"\\ud800"}',
      `${'{"a":'.repeat(10_000)}1`,
      '{"id":"x","id":"y","__proto__":{"id":"z"}}',
      "\ufeff{}",
    ),
  },
);

const cursors = fc.oneof(
  hostileText,
  fc
    .array(fc.oneof(fc.integer(), fc.string({ maxLength: 8 }), fc.constant(null)), { maxLength: 6 })
    .map((position) => Buffer.from(JSON.stringify([1, ...position])).toString("base64url")),
);

const query = fc.dictionary(
  fc.constantFrom("status", "order", "pageSize", "cursor", "runNumber", "__proto__"),
  fc.oneof(
    hostileText,
    cursors,
    hostileNumber.map(String),
    fc.constantFrom("running", "oldest", "1"),
  ),
  { maxKeys: 3 },
);

const attack = fc.record({
  route: fc.constantFrom(...routes),
  workflow: fc.oneof(
    { weight: 4, arbitrary: fc.constant("a") },
    { weight: 1, arbitrary: hostileText },
  ),
  id: fc.oneof({ weight: 4, arbitrary: fc.constant("x") }, { weight: 1, arbitrary: hostileText }),
  query,
  body: rawBody,
  key: fc.option(hostileText),
  method: fc.option(fc.constantFrom("PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "POST", "GET")),
});

/** Sends a request without `fetch`, which would mend some of it. */
function send(
  url: URL,
  path: string,
  method: string,
  headers: Record<string, string>,
  body: string,
) {
  return new Promise<{ status: number; text: string; isStream: boolean }>((resolve, reject) => {
    const outgoing = request(
      { host: url.hostname, port: url.port, path, method, headers, agent: false },
      (incoming) => {
        const isStream =
          method !== "HEAD" &&
          incoming.headers["content-type"]?.startsWith("text/event-stream") === true;
        const done = (text: string): void => {
          clearTimeout(timer);
          resolve({ status: incoming.statusCode ?? 0, text, isStream });
        };
        if (isStream) {
          incoming.once("data", () => {
            incoming.destroy();
            done("");
          });
          return;
        }
        let text = "";
        incoming.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
        incoming.on("end", () => done(text)).on("error", reject);
      },
    );
    const timer = setTimeout(() => {
      outgoing.destroy();
      reject(new Error(`no answer in ${ANSWER_WITHIN_MS} ms`));
    }, ANSWER_WITHIN_MS);
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

function segment(text: string): string {
  // The text stays as it is where a request line can hold it, so that half-encoded text gets through, too.
  return /^[!-~]+$/.test(text) && !/[/?#]/.test(text)
    ? text
    : encodeURIComponent(text.replaceAll(/\p{Cs}/gu, "\ufffd"));
}

export function endures(openStore: OpenStore, defaultRuns: number): void {
  const runs = Number(process.env["PAWL_FUZZ_RUNS"] ?? defaultRuns);
  test(`${runs} hostile requests get answers of the contract`, () => attackStore(openStore, runs));
}

function attackStore(openStore: OpenStore, numRuns: number): Promise<void> {
  return inScope(async (scope) => {
    const { url, pawl } = await served(scope, {
      workflows,
      store: await openStore(scope),
      tick: { enabled: true, insecure: true },
    });
    await pawl.workflows.A.create({ id: "x" });
    const statuses = new Map<number, number>();
    await fc.assert(
      fc.asyncProperty(attack, async (given) => {
        const [operation, route] = given.route;
        const path = route.path
          .replace(":workflowName", segment(given.workflow))
          .replace(":instanceId", segment(given.id));
        const search = new URLSearchParams(Object.entries(given.query)).toString();
        const method = given.method ?? route.method;
        const key = given.key !== null && /^[ -~]*$/.test(given.key) ? given.key : null;
        const headers = {
          "content-length": String(Buffer.byteLength(given.body)),
          ...(key === null ? {} : { "idempotency-key": key }),
        };
        const { status, text, isStream } = await send(
          new URL(url),
          `/api${path}?${search}`,
          method,
          headers,
          given.body,
        );
        const what = `${method} ${path}?${search} ${given.body.slice(0, 200)} → ${status} ${text.slice(0, 200)}`;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        expect(status, what).toBeLessThan(500);
        if (isStream || method === "HEAD" || method === "OPTIONS" || status === 204) return;
        // Some of the requests are for another path, or for none.
        if (
          method !== route.method ||
          path.includes("..") ||
          path.includes("//") ||
          /\/((%2e|\.)+)?(\/|$)/i.test(path)
        ) {
          if (status !== 200) expectError(status, text);
          return;
        }
        expectAnswerOf(route, status, text);
        agree(operation, given.body, status);
      }),
      { numRuns, interruptAfterTimeLimit: 40_000, markInterruptAsFailure: false },
    );

    /** Expects that every body that the document refuses is refused. */
    function agree(operation: string, body: string, status: number): void {
      const route = routes.find(([name]) => name === operation)![1];
      if (route.body === undefined || status === 404) return;
      let json: unknown;
      try {
        json = JSON.parse(body);
      } catch {
        return;
      }
      if (!isRequestOf(route, json)) expect([status, body]).toEqual([400, body]);
    }

    expect([...statuses.keys()]).toEqual(expect.arrayContaining([200, 400, 404, 405]));
    expect((await get(`${url}/workflows/a/instances/x`))[0]).toBe(200);
  });
}
