import type { Browser, Page } from "playwright-core";
import { Hono } from "hono";
import { cors } from "hono/cors";
import { bearerToken } from "pawl/auth";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { browser } from "../support/browser.js";
import { inScope, Scope } from "../support/scope.js";
import { until } from "../support/until.js";
import type { Scenarios } from "./browser/page.js";
import { engine, site } from "./browser/server.js";
import { memoryStore } from "./server.js";

let chromium: Browser;
const scope = new Scope();
beforeAll(async () => {
  chromium = await browser(scope);
}, 300_000);
afterAll(() => scope.end());

type Name = keyof Scenarios;

/** Opens a page of that site, and collects what it says on the console. */
async function open(own: Scope, url: string) {
  const page = await chromium.newPage();
  own.defer(() => page.close());
  const said: string[] = [];
  page.on("console", (message) => void said.push(message.text()));
  await page.goto(url);
  return { page, said, run: scenariosIn(page) };
}

function scenariosIn(page: Page) {
  return <N extends Name>(name: N, given: Parameters<Scenarios[N]>[0]) =>
    page.evaluate(
      ([which, argument]) => {
        const { scenarios } = globalThis as unknown as {
          scenarios: Record<string, (argument: unknown) => unknown>;
        };
        return scenarios[which as string]!(argument);
      },
      [name, given] as const,
    ) as Promise<Awaited<ReturnType<Scenarios[N]>>>;
}

const livedThrough = {
  isEarly: true,
  output: [0, true, ["Grace"]],
  after: "complete",
  batch: ["o-2", "o-3"],
  listed: [
    ["o-1", true],
    ["o-2", true],
  ],
  history: ["step", "step", "event"],
};

describe("in a browser, the client", () => {
  test("does all that it does elsewhere, and waits for a result with one stream", () =>
    inScope(async (own) => {
      const pawl = await engine(own, memoryStore(own));
      const { url, requests } = await site(own, pawl.fetch);
      const { run } = await open(own, url);
      expect(await run("life", { baseUrl: "/api" })).toEqual(livedThrough);
      const order = "/api/workflows/order/instances";
      expect(requests.filter((each) => each.endsWith("/o-1") || each.endsWith("-stream"))).toEqual([
        `GET ${order}/o-1`, // get
        `GET ${order}/o-1`, // status
        `GET ${order}/o-1/events-stream`,
        `GET ${order}/o-1`,
      ]);
      expect(requests.filter((each) => each === "GET /api/workflows").length).toBe(1);
    }));

  test("throws what the API and the workflow report, by class and code", () =>
    inScope(async (own) => {
      const pawl = await engine(own, memoryStore(own));
      const { url } = await site(own, pawl.fetch);
      const { run } = await open(own, url);
      const errors = await run("errors", { baseUrl: url });
      expect(errors).toMatchObject({
        missing: { code: "INSTANCE_NOT_FOUND", classes: ["WorkflowError"] },
        taken: { code: "INSTANCE_ID_ALREADY_EXISTS", classes: ["WorkflowError"] },
        late: { name: "ResultTimeoutError", classes: ["ResultTimeoutError"] },
        failed: { name: "CardError", message: "no such card" },
        terminated: { name: "InstanceTerminatedError", classes: ["InstanceTerminatedError"] },
      });
    }));

  test("gives up when its signal is aborted", () =>
    inScope(async (own) => {
      const pawl = await engine(own, memoryStore(own));
      const { url } = await site(own, pawl.fetch);
      const { run } = await open(own, url);
      expect(await run("aborts", { baseUrl: "/api" })).toMatchObject({
        result: { message: "enough", classes: ["TypeError"] },
        timeout: { name: "TimeoutError" },
        create: { message: "enough", classes: ["TypeError"] },
      });
    }));

  test("calls another origin that allows it, with a token, and no other origin", () =>
    inScope(async (own) => {
      const authorize = { all: bearerToken("secret") };
      const pawl = await engine(own, memoryStore(own), { authorize });
      const app = new Hono();
      const { url } = await site(own, () => new Response(null, { status: 404 }));
      app.use("/api/*", cors({ origin: url }));
      app.all("/api/*", (c) => pawl.fetch(c.req.raw));
      const api = await site(own, (request) => app.fetch(request));
      const closed = await site(own, pawl.fetch);
      const { run } = await open(own, url);
      const headers = { authorization: "Bearer secret" };
      expect(await run("life", { baseUrl: api.url, headers })).toEqual(livedThrough);
      expect(await run("refused", { baseUrl: api.url })).toMatchObject({ code: "UNAUTHORIZED" });
      expect(await run("refused", { baseUrl: closed.url, headers })).toMatchObject({
        code: "STORE_UNAVAILABLE",
        message: "the API cannot be reached",
      });
    }));
});

describe("an EventSource comes back", () => {
  const params = { due: new Date(0), tags: new Map<string, bigint>() };
  const approval = { type: "approval", payload: new Set(["Grace"]) };
  const stream = "/api/workflows/order/instances/o-1/events-stream";

  test("after its process was closed and another took over, and not after the end", () =>
    inScope(async (own) => {
      const store = memoryStore(own);
      // The next process uses the same store, so this one does not close it.
      let pawl = await engine(own, { ...store, close: async () => {} });
      const { url, requests } = await site(own, (request) => pawl.fetch(request));
      const { run, said } = await open(own, url);
      await pawl.workflows.ORDER.create({ id: "o-1", params });
      await run("follow", url + stream);
      await until(() => said.includes("status waiting"), "told");
      await pawl.close();
      const streams = () => requests.filter((each) => each.endsWith("events-stream")).length;
      await until(() => streams() >= 3, "it asks again, and again");
      pawl = await engine(own, store);
      await (await pawl.workflows.ORDER.get("o-1")).sendEvent(approval);
      await until(() => said.includes("status complete"), "told of the end");
      expect(said.filter((each) => each === "status waiting").length).toBe(1);
      await until(() => said.includes("error 2"), "closed");
      expect(said.indexOf("error 2")).toBeGreaterThan(said.indexOf("status complete"));
    }));

  test("after its server was closed and is there again", () =>
    inScope(async (own) => {
      const pawl = await engine(own, memoryStore(own));
      const first = await site(own, pawl.fetch);
      const { run, said } = await open(own, first.url);
      const order = await pawl.workflows.ORDER.create({ id: "o-1", params });
      await run("follow", first.url + stream);
      await until(() => said.includes("status waiting"), "told");
      await first.server.close();
      const errors = () => said.filter((each) => each === "error 0").length;
      await until(() => errors() >= 2, "it tries again, in vain");
      await site(own, pawl.fetch, Number(new URL(first.url).port));
      await order.sendEvent(approval);
      await until(() => said.includes("status complete"), "told of the end");
    }));
});
