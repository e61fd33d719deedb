import {
  createWorkflows,
  defineWorkflow,
  WorkflowError,
  type AuthorizeRequest,
  type Policy,
} from "pawl";
import { bearerToken } from "pawl/auth";
import { describe, expect, test } from "vitest";
import { collecting, type LogEntry } from "../scenarios/stage.js";
import { inScope, Scope } from "../support/scope.js";
import { get, post } from "./routes.js";
import { memoryStore, served } from "./server.js";

const workflows = { A: defineWorkflow({ name: "a", run: async () => 1 }) };

function servedWith(scope: Scope, options: object) {
  return served(scope, { workflows, run: false, ...options });
}

test("a policy sees the request, and the body when it asks", () =>
  inScope(async (scope) => {
    const seen: unknown[] = [];
    const see =
      (policy: string, reads = false): Policy =>
      async (request: AuthorizeRequest) => {
        const { method, route, params, headers } = request;
        const body = reads ? await request.body() : "unread";
        seen.push([policy, method, route, params, headers.get("x-tenant"), body]);
        // A change of its copy has no effect.
        if (reads) (body as Record<string, unknown>)["id"] = "changed";
      };
    const { url } = await servedWith(scope, {
      authorize: { all: see("all"), create: see("create", true), read: see("read") },
    });
    const instances = "/workflows/:workflowName/instances";
    expect(await post(`${url}/workflows/a/instances`, { id: "x" }, { "x-tenant": "t" })).toEqual([
      200,
      { id: "x", details: { status: "queued" } },
    ]);
    await get(`${url}/workflows/a/instances/%2f`);
    await get(`${url}/nope`);
    await fetch(`${url}/workflows`, { method: "PUT" });
    expect(seen).toEqual([
      ["all", "POST", instances, { workflowName: "a" }, "t", "unread"],
      ["create", "POST", instances, { workflowName: "a" }, "t", { id: "changed" }],
      [
        "all",
        "GET",
        `${instances}/:instanceId`,
        { workflowName: "a", instanceId: "/" },
        null,
        "unread",
      ],
      [
        "read",
        "GET",
        `${instances}/:instanceId`,
        { workflowName: "a", instanceId: "/" },
        null,
        "unread",
      ],
      ["all", "GET", null, {}, null, "unread"],
      ["all", "PUT", "/workflows", {}, null, "unread"],
    ]);
  }));

const denials: [how: string, policy: () => unknown, expected: unknown][] = [
  [
    "throws an error with a code",
    () => {
      throw new WorkflowError("UNAUTHORIZED", "who are you?");
    },
    [401, { code: "UNAUTHORIZED", message: "who are you?" }],
  ],
  [
    "rejects",
    () => Promise.reject(new Error("secret of the house")),
    [403, { code: "FORBIDDEN", message: "this request is not allowed" }],
  ],
  [
    "returns a response",
    () => Response.json({ pay: "first" }, { status: 402 }),
    [402, { pay: "first" }],
  ],
  [
    "throws a response",
    () => {
      throw Response.json({ pay: "first" }, { status: 402 });
    },
    [402, { pay: "first" }],
  ],
  [
    "returns false",
    () => false,
    [403, { code: "FORBIDDEN", message: "this request is not allowed" }],
  ],
  [
    "returns anything else",
    () => ({ user: 1 }),
    [403, { code: "FORBIDDEN", message: "this request is not allowed" }],
  ],
  [
    "throws nothing in particular",
    () => {
      throw undefined;
    },
    [403, { code: "FORBIDDEN", message: "this request is not allowed" }],
  ],
];

describe("a policy denies if it", () => {
  test.each(denials)("%s", (_how, policy, expected) =>
    inScope(async (scope) => {
      const logs: LogEntry[] = [];
      const { url, pawl } = await servedWith(scope, {
        authorize: { create: policy as Policy },
        logger: collecting(logs),
      });
      expect(await post(`${url}/workflows/a/instances`, { id: "x" })).toEqual(expected);
      expect((await pawl.list("a")).instances).toEqual([]);
      expect((await get(`${url}/workflows/a/instances`))[0]).toBe(200);
    }),
  );
});

test("a body that is too long is refused even when a policy reads it", () =>
  inScope(async (scope) => {
    const { url } = await servedWith(scope, {
      authorize: { create: async (request: AuthorizeRequest) => void (await request.body()) },
      limits: { requestMaxBytes: 100 },
    });
    expect(await post(`${url}/workflows/a/instances`, { params: "x".repeat(100) })).toMatchObject([
      413,
      { code: "PAYLOAD_TOO_LARGE" },
    ]);
  }));

test("bearerToken accepts its own tokens only, and refuses unusable ones", async () => {
  const policy = bearerToken(["one", "two"]);
  const ask = (authorization?: string) =>
    policy({ headers: new Headers(authorization === undefined ? {} : { authorization }) } as never);
  await expect(ask("Bearer one")).resolves.toBeUndefined();
  await expect(ask("bearer  two")).resolves.toBeUndefined();
  for (const wrong of [
    undefined,
    "",
    "one",
    "Bearer",
    "Bearer ",
    "Bearer onE",
    "Bearer one two",
    "Basic one",
    "Bearer onetwo",
  ]) {
    await expect(ask(wrong), wrong).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  }
  for (const wrong of ["", [], [""], ["a b"], [undefined], undefined]) {
    expect(() => bearerToken(wrong as string)).toThrow("bearerToken");
  }
});

describe("createWorkflows refuses", () => {
  const create = (options: object) => () =>
    createWorkflows({ workflows, store: memoryStore(new Scope()), ...options });
  test.each([
    ["ticks without a policy", { tick: { enabled: true } }, "tick.enabled needs a policy"],
    [
      "a policy for an unknown group",
      { authorize: { mangae: () => {} } },
      '"mangae" is none of all, create',
    ],
    ["a policy as text", { authorize: { all: "secret" } }, "authorize.all must be a function"],
    ["a policy by itself", { authorize: () => {} }, "{ all: policy }, got a function"],
    ["a Map of policies", { authorize: new Map([["all", () => {}]]) }, "{ all: policy }, got an"],
    ["policies in an array", { authorize: [() => {}] }, "{ all: policy }, got an array"],
    ["null as policies", { authorize: null }, "{ all: policy }, got null"],
    ["false as policies", { authorize: false }, "{ all: policy }, got false"],
    ["a tick that is a boolean", { tick: true }, "{ enabled: true }, got true"],
    ["a tick that is null", { tick: null }, "{ enabled: true }, got null"],
    ["a tick with a misspelt key", { tick: { enable: true } }, 'tick: unknown option "enable"'],
    ["hooks in a Map", { hooks: new Map() }, "hooks must be a plain object such as"],
    ["hooks that are null", { hooks: null }, "{ onInstanceFinished }, got null"],
    ["a base path without a slash", { basePath: "api" }, 'basePath must be a path such as "/api"'],
    [
      "a base path with a trailing slash",
      { basePath: "/api/" },
      'basePath must be a path such as "/api"',
    ],
  ])("%s", (_what, options, message) => {
    expect(create(options)).toThrow(message);
  });

  test("nothing that is allowed explicitly", () => {
    expect(create({ tick: { enabled: true, insecure: true } })).not.toThrow();
    expect(create({ tick: { enabled: true }, authorize: { all: () => {} } })).not.toThrow();
    const bare = Object.assign(Object.create(null), { all: () => {} });
    expect(create({ tick: { enabled: true }, authorize: bare })).not.toThrow();
  });
});

test("a tick over HTTP needs its token and valid options, and runs what is due", () =>
  inScope(async (scope) => {
    const { url, pawl } = await servedWith(scope, {
      basePath: "",
      tick: { enabled: true },
      authorize: { tick: bearerToken("t") },
    });
    const instance = await pawl.workflows.A.create();
    const token = { authorization: "Bearer t" };
    expect((await post(`${url}/_runner/tick`))[0]).toBe(401);
    expect(await post(`${url}/_runner/tick`, { maxInstances: 0 }, token)).toMatchObject([
      400,
      { code: "INVALID_REQUEST", message: "maxInstances must be a whole number from 1, got 0" },
    ]);
    expect(await post(`${url}/_runner/tick`, { maxInstances: 5 }, token)).toEqual([
      200,
      { processed: 1, nextWakeInMs: null },
    ]);
    expect(await instance.result()).toBe(1);
  }));
