// Every route is asked with every method, without a token, with a wrong and with the right one.
import { defineWorkflow } from "pawl";
import { bearerToken } from "pawl/auth";
import { expect, test } from "vitest";
import type { PolicyGroup } from "../../src/authoring/policies.js";
import { inScope } from "../support/scope.js";
import { expectAnswerOf, expectError, routes } from "./answers.js";
import { served } from "./server.js";

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;
const groups: readonly PolicyGroup[] = ["create", "manage", "sendEvent", "read", "tick"];
const workflows = {
  ORDER: defineWorkflow({
    name: "order",
    run: async (_event, step) => void (await step.waitForEvent("wait", { type: "go" })),
  }),
};

/** The bodies with which these routes do their work. */
const bodies: Readonly<Record<string, unknown>> = {
  createBatch: { instances: [{ id: "n1" }] },
  sendEvent: { type: "other" },
};

const unknownPaths = ["/", "/api", "/api/", "/api/nope", "/apiworkflows", "/api/workflows/"];

test("every route answers every method and token as the contract says", () =>
  inScope(async (scope) => {
    const { url, pawl } = await served(scope, {
      workflows,
      run: false,
      authorize: {
        all: bearerToken(groups.map((group) => `${group}-token`)),
        ...Object.fromEntries(groups.map((group) => [group, bearerToken(`${group}-token`)])),
      },
      tick: { enabled: true },
    });
    const origin = url.replace(/\/api$/, "");
    await pawl.workflows.ORDER.create({ id: "batch" });
    const everything = async () => [
      await pawl.list("order"),
      await pawl.history("order", "batch"),
      await Promise.all(["batch"].map((id) => pawl.history("order", id, { pageSize: 100 }))),
    ];
    const before = await everything();

    async function send(path: string, method: string, token: string | null, body?: unknown) {
      const hasBody = method !== "GET" && method !== "HEAD" && body !== undefined;
      const response = await fetch(origin + path, {
        method,
        headers: token === null ? {} : { authorization: `Bearer ${token}` },
        ...(hasBody ? { body: JSON.stringify(body) } : {}),
      });
      const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
      if (isStream) await response.body?.cancel();
      return { response, text: isStream ? "" : await response.text() };
    }

    const paths = [...new Set(routes.map(([, { path }]) => path))];
    const at = (path: string) =>
      `/api${path.replace(":workflowName", "order").replace(":instanceId", "batch")}`;
    // Where two templates meet, both answer, because an instance may be called "batch".
    const atPath = (path: string) => routes.filter(([, route]) => at(route.path) === at(path));

    let calls = 0;
    await Promise.all(
      [...paths.map(at), ...unknownPaths].flatMap((path) =>
        methods.flatMap((method) =>
          [null, "wrong", "x".repeat(10_000)].map(async (token) => {
            const { response, text } = await send(path, method, token, {});
            expect([response.status, path, method]).toEqual([401, path, method]);
            if (method !== "HEAD") expectError(401, text, ["UNAUTHORIZED"]);
            expect(response.headers.get("www-authenticate")).toBe("Bearer");
            calls += 1;
          }),
        ),
      ),
    );
    for (const path of unknownPaths) {
      for (const method of methods) {
        const { response, text } = await send(path, method, "read-token");
        expect([response.status, path, method]).toEqual([404, path, method]);
        if (method !== "HEAD") expectError(404, text, ["NOT_FOUND"]);
      }
    }
    for (const [operation, route] of routes) {
      for (const group of groups.filter((each) => each !== route.group)) {
        const { response, text } = await send(
          at(route.path),
          route.method,
          `${group}-token`,
          bodies[operation] ?? {},
        );
        expect([response.status, operation, group]).toEqual([401, operation, group]);
        expectError(401, text, ["UNAUTHORIZED"]);
        calls += 1;
      }
    }
    // A denied request has written nothing.
    expect(await everything()).toEqual(before);

    for (const path of paths) {
      const here = atPath(path);
      const allowed = new Set(
        here.flatMap(([, { method }]) => (method === "GET" ? ["GET", "HEAD"] : [method])),
      );
      for (const method of methods) {
        const [operation, route] =
          here.find(([, each]) => each.method === (method === "HEAD" ? "GET" : method)) ?? [];
        const token = `${route?.group ?? "read"}-token`;
        const { response, text } = await send(
          at(path),
          method,
          token,
          bodies[operation ?? ""] ?? {},
        );
        const where = `${method} ${path}`;
        calls += 1;
        expect(response.headers.get("x-content-type-options"), where).toBe("nosniff");
        expect(response.headers.get("cache-control"), where).toContain("no-store");
        if (route !== undefined) {
          expect([response.status, where]).toEqual([200, where]);
          if (method === "HEAD") expect(text).toBe("");
          else if (route.stream !== true) expectAnswerOf(route, response.status, text);
          continue;
        }
        const allow = response.headers.get("allow")?.split(", ") ?? [];
        expect(new Set(allow), where).toEqual(new Set([...allowed, "OPTIONS"]));
        expect(response.status, where).toBe(method === "OPTIONS" ? 204 : 405);
        if (method !== "OPTIONS" && method !== "HEAD")
          expectError(405, text, ["METHOD_NOT_ALLOWED"]);
      }
    }
    expect(calls).toBeGreaterThan(400);
  }));
