import { setImmediate as pause } from "node:timers/promises";
import {
  defineWorkflow,
  InstanceTerminatedError,
  ResultTimeoutError,
  ValidationError,
  WorkflowError,
  type Policy,
} from "pawl";
import { bearerToken } from "pawl/auth";
import { createClient, type ClientFetch } from "pawl/client";
import { describe, expect, test } from "vitest";
import { inScope, type Scope } from "../support/scope.js";
import { until } from "../support/until.js";
import { awaitRemoteResult } from "../../src/client/result.js";
import { Transport } from "../../src/client/transport.js";
import { VirtualTime } from "../../src/testing/virtual-time.js";
import { served } from "./server.js";

const workflows = {
  WAIT: defineWorkflow({
    name: "wait for it/now?",
    async run(_event, step) {
      const events: unknown[] = [];
      for (const n of [1, 2]) {
        events.push((await step.waitForEvent<number>(`wait ${n}`, { type: "go" })).payload);
      }
      return events;
    },
  }),
  NOTHING: defineWorkflow({ name: "nothing", run: async () => {} }),
};

type Given = Parameters<ClientFetch>;

/** A client that records what it sends, and may be answered by someone else. */
async function start(
  scope: Scope,
  via: (send: () => Promise<Response>, ...given: Given) => Promise<Response> = (send) => send(),
  options: { authorize?: { all: Policy } } = {},
) {
  const { url, pawl } = await served(scope, { workflows, ...options });
  const sent: string[] = [];
  const client = createClient<typeof pawl>({
    baseUrl: url,
    fetch: (to, init) => {
      sent.push(`${init.method} ${to.slice(url.length)}`);
      return via(() => fetch(to, init), to, init);
    },
  });
  return { client, pawl, sent, url };
}

/** Carries out requests, and loses their answers the first times. */
function losingAnswers(times: number, of: RegExp) {
  let left = times;
  return async (send: () => Promise<Response>, url: string): Promise<Response> => {
    const response = await send();
    if (!of.test(url) || left-- <= 0) return response;
    await response.body?.cancel();
    throw new TypeError("fetch failed");
  };
}

test("binding keys are looked up once, and again after a failure", () =>
  inScope(async (scope) => {
    let isOpen = false;
    const { client, sent } = await start(scope, (send) =>
      isOpen ? send() : Promise.resolve(new Response("no", { status: 403 })),
    );
    await expect(client.workflows.NOTHING.create()).rejects.toMatchObject({ code: "FORBIDDEN" });
    isOpen = true;
    await Promise.all([client.workflows.NOTHING.create(), client.workflows.WAIT.create()]);
    await client.workflows.NOTHING.create();
    expect(sent.filter((each) => each === "GET /workflows")).toHaveLength(2);
    const strange = client.workflows as unknown as Record<string, typeof client.workflows.NOTHING>;
    await expect(strange["OTHER"]!.create()).rejects.toMatchObject({
      code: "WORKFLOW_NOT_FOUND",
      message: 'there is no binding "OTHER"',
    });
    await expect(Promise.resolve(client.workflows)).resolves.toBeDefined();
  }));

describe("when the answer is lost", () => {
  test("an instance is created once", () =>
    inScope(async (scope) => {
      const { client, pawl } = await start(scope, losingAnswers(2, /instances$/));
      const named = await client.workflows.WAIT.create({ id: "w1" });
      const unnamed = await client.workflows.WAIT.create();
      expect(named.id).toBe("w1");
      const { instances } = await pawl.list("wait for it/now?");
      expect(instances.map(({ id }) => id).toSorted()).toEqual(["w1", unnamed.id].toSorted());
      await expect(client.workflows.WAIT.create({ id: "w1" })).rejects.toMatchObject({
        code: "INSTANCE_ID_ALREADY_EXISTS",
      });
    }));

  test("a batch gets the answer that it would have got", () =>
    inScope(async (scope) => {
      const { client, pawl } = await start(scope, losingAnswers(1, /batch$/));
      await pawl.workflows.WAIT.create({ id: "b1" });
      const created = await client.workflows.WAIT.createBatch([{ id: "b1" }, { id: "b2" }]);
      expect(created.map(({ id }) => id)).toEqual(["b2"]);
    }));

  test("an event arrives once, and a restart happens once", () =>
    inScope(async (scope) => {
      const { client, pawl } = await start(scope, losingAnswers(3, /events$|restart$/));
      const instance = await client.workflows.WAIT.create({ id: "w1" });
      await instance.sendEvent({ type: "go", payload: 1 });
      await instance.sendEvent({ type: "go", payload: 2 });
      expect(await instance.result({ timeout: "20 seconds" })).toEqual([1, 2]);
      await instance.restart();
      expect((await pawl.history("wait for it/now?", "w1")).runNumber).toBe(2);
    }));

  test("an event counts as sent even if its run ends before the next try", () =>
    inScope(async (scope) => {
      const lose = losingAnswers(1, /events$/);
      const { client, pawl, sent } = await start(scope, (send, url) =>
        lose(async () => {
          const response = await send();
          if (url.endsWith("/events")) await own.result({ timeout: "20 seconds" });
          return response;
        }, url),
      );
      const own = await pawl.workflows.WAIT.create({ id: "w1" });
      await own.sendEvent({ type: "go", payload: 1 });
      const instance = await client.workflows.WAIT.get("w1");
      sent.length = 0;
      await instance.sendEvent({ type: "go", payload: 2 });
      expect(sent).toHaveLength(2);
      expect(await instance.result()).toEqual([1, 2]);
      await expect(instance.sendEvent({ type: "go", payload: 3 })).rejects.toMatchObject({
        code: "INSTANCE_TERMINAL",
      });
    }));
});

test("a 503, 502 or 429 is tried again, and a mistake is not", () =>
  inScope(async (scope) => {
    const answers = [503, 502, 429];
    const { client, sent } = await start(scope, (send, url) => {
      const status = url.endsWith("/missing") ? undefined : answers.shift();
      return status === undefined ? send() : Promise.resolve(new Response("<html>", { status }));
    });
    await client.workflows.NOTHING.create({ id: "n1" });
    expect(answers).toEqual([]);
    sent.length = 0;
    await expect(client.workflows.NOTHING.get("missing")).rejects.toMatchObject({
      code: "INSTANCE_NOT_FOUND",
      status: 404,
    });
    expect(sent).toEqual(["GET /workflows/nothing/instances/missing"]);
  }));

test("an API that stays unreachable is reported with its cause", () =>
  inScope(async (scope) => {
    const refused = new TypeError("fetch failed");
    const { client, sent } = await start(scope, () => Promise.reject(refused));
    const error = await client.list("nothing").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(WorkflowError);
    expect(error).toMatchObject({ code: "STORE_UNAVAILABLE", cause: refused });
    expect(sent).toHaveLength(5);
  }));

test.each([
  [404, "NOT_FOUND"],
  [401, "UNAUTHORIZED"],
  [413, "PAYLOAD_TOO_LARGE"],
  [418, "INVALID_REQUEST"],
  [500, "INTERNAL_ERROR"],
])("a %i that is not the API's own is %s", (status, code) =>
  inScope(async (scope) => {
    const page = '<html>{"code":"NOT_FOUND"}</html>';
    const { client } = await start(scope, async () => new Response(page, { status }));
    await expect(client.list("nothing")).rejects.toMatchObject({ code });
  }),
);

test("a page instead of JSON is an error", () =>
  inScope(async (scope) => {
    const { client } = await start(scope, async () => new Response("<html>"));
    await expect(client.list("nothing")).rejects.toMatchObject({ code: "INTERNAL_ERROR" });
  }));

test("headers are computed for each request, and an origin alone means its /api", () =>
  inScope(async (scope) => {
    const { url } = await start(scope, undefined, { authorize: { all: bearerToken("two") } });
    const tokens = ["one", "two"];
    const headers = async () => ({ authorization: `Bearer ${tokens.shift()}` });
    for (const baseUrl of [url, `${url}/`]) {
      const client = createClient({ baseUrl, headers: { authorization: "Bearer two" } });
      expect((await client.list("nothing")).instances).toEqual([]);
    }
    const client = createClient({ baseUrl: new URL(url).origin, headers });
    await expect(client.list("nothing")).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect((await client.list("nothing")).instances).toEqual([]);
  }));

describe("a signal", () => {
  test("ends a request, and the pause before the next", () =>
    inScope(async (scope) => {
      const { client, sent } = await start(scope, (send, url, init) =>
        url.includes("instances?")
          ? Promise.resolve(new Response("", { status: 503 }))
          : init.signal?.aborted
            ? Promise.reject(new Error("should not be sent"))
            : send(),
      );
      const abort = new AbortController();
      const listing = client.list("nothing", { pageSize: 1 }, { signal: abort.signal });
      await until(() => sent.length > 0, "sent");
      abort.abort(new Error("enough"));
      await expect(listing).rejects.toThrow("enough");
      await expect(client.workflows.NOTHING.create({}, { signal: abort.signal })).rejects.toThrow(
        "enough",
      );
      expect(sent.filter((each) => each.startsWith("POST"))).toEqual([]);
    }));

  test("ends the lookup of a binding, but not for others who share it", () =>
    inScope(async (scope) => {
      let answer = (): void => {};
      const held = new Promise<void>((resolve) => (answer = resolve));
      const { client, sent } = await start(scope, async (send) => {
        await held;
        return send();
      });
      const { WAIT, NOTHING } = client.workflows;
      const other = NOTHING.create();
      const abort = new AbortController();
      const { signal } = abort;
      const asked: Promise<unknown>[] = [
        WAIT.create({}, { signal }),
        WAIT.createBatch([], { signal }),
        WAIT.get("x", { signal }),
      ];
      const refused = Promise.all(asked.map((each) => expect(each).rejects.toThrow("enough")));
      await until(() => sent.length > 0, "sent");
      abort.abort(new Error("enough"));
      await refused;
      await expect(WAIT.create({}, { signal })).rejects.toThrow("enough");
      answer();
      await other;
      expect(sent).toEqual(["GET /workflows", "POST /workflows/nothing/instances"]);
    }));

  test("ends a wait for the result", () =>
    inScope(async (scope) => {
      const { client, sent } = await start(scope);
      const instance = await client.workflows.WAIT.create();
      const abort = new AbortController();
      const result = instance.result({ signal: abort.signal, timeout: "1 hour" });
      await until(() => sent.some((each) => each.endsWith("events-stream")), "streaming");
      abort.abort(new Error("enough"));
      await expect(result).rejects.toThrow("enough");
    }));
});

describe("result", () => {
  test("gives up in time", () =>
    inScope(async (scope) => {
      const { client } = await start(scope);
      const instance = await client.workflows.WAIT.create();
      await expect(instance.result({ timeout: 50 })).rejects.toBeInstanceOf(ResultTimeoutError);
      await expect(instance.result({ timeout: "soon" })).rejects.toMatchObject({
        code: "INVALID_REQUEST",
      });
    }));

  test("is undefined if nothing was returned, and throws if the instance was terminated", () =>
    inScope(async (scope) => {
      const { client } = await start(scope);
      const nothing = await client.workflows.NOTHING.create();
      expect(await nothing.result()).toBeUndefined();
      const waiting = await client.workflows.WAIT.create();
      const ended = expect(waiting.result()).rejects.toBeInstanceOf(InstanceTerminatedError);
      await waiting.terminate();
      await ended;
    }));

  test("holds one stream, and goes on after it breaks", () =>
    inScope(async (scope) => {
      let cuts = 2;
      const cursors: (string | undefined)[] = [];
      const { client, sent } = await start(scope, async (send, url, { headers }) => {
        const response = await send();
        if (url.endsWith("events-stream")) cursors.push(headers["last-event-id"]);
        if (!url.endsWith("events-stream") || cuts-- <= 0) return response;
        // The stream ends after its first piece, as through a proxy that was restarted.
        const reader = response.body!.getReader();
        const body = new ReadableStream<Uint8Array>({
          async pull(controller) {
            const { value } = await reader.read();
            if (value !== undefined) controller.enqueue(value);
            await reader.cancel();
            if (cuts === 1) controller.error(new TypeError("terminated"));
            else controller.close();
          },
        });
        return new Response(body, { headers: response.headers });
      });
      const instance = await client.workflows.WAIT.create();
      const result = instance.result({ timeout: "20 seconds" });
      const streams = () => sent.filter((each) => each.endsWith("events-stream")).length;
      await until(() => streams() === 3, "the third stream");
      await instance.sendEvent({ type: "go", payload: 1 });
      await instance.sendEvent({ type: "go", payload: 2 });
      expect(await result).toEqual([1, 2]);
      expect(streams()).toBe(3);
      expect(cursors).toEqual([undefined, expect.any(String), expect.any(String)]);
    }));

  test("gives up a silent connection, and not one that gives signs of life", () =>
    inScope(async (scope) => {
      const { url, pawl } = await served(scope, { workflows });
      const time = new VirtualTime();
      const pass = async (ms: number): Promise<void> => {
        const upTo = time.now() + ms;
        for (let next = time.takeNext(upTo); next !== null; next = time.takeNext(upTo)) {
          next.callback();
          await pause();
        }
        time.set(upTo);
      };
      let streams = 0;
      let reads = 0;
      let comment = (): void => {};
      const through: ClientFetch = async (to, init) => {
        streams += 1;
        const response = await fetch(to, init);
        if (streams > 1) return response;
        // The network seems to have forgotten the connection, which neither goes on nor ends.
        await response.body!.cancel();
        const body = new ReadableStream<Uint8Array>(
          {
            pull(controller) {
              reads += 1;
              comment = () => controller.enqueue(new TextEncoder().encode(":\n\n"));
              return new Promise(() => {});
            },
          },
          { highWaterMark: 0 },
        );
        return new Response(body, { headers: response.headers });
      };
      const transport = new Transport({ baseUrl: url, fetch: through }, time.runtime());
      const { id } = await pawl.workflows.WAIT.create();
      const target = { workflowName: "wait for it/now?", instanceId: id };
      const result = awaitRemoteResult(transport, target, {});
      await until(() => reads === 1, "the first read");
      for (let n = 0; n < 10; n++) {
        await pass(15_000);
        comment();
        await pause();
      }
      expect(streams).toBe(1);
      const since = time.now();
      await until(() => pass(1_000).then(() => streams === 2), "another connection");
      expect(time.now() - since).toBeGreaterThanOrEqual(40_000);
      expect(time.now() - since).toBeLessThan(60_000);
      const instance = await pawl.workflows.WAIT.get(id);
      await instance.sendEvent({ type: "go", payload: 1 });
      await instance.sendEvent({ type: "go", payload: 2 });
      expect(await result).toEqual([1, 2]);
    }));

  test("waits for the run that a restart began", () =>
    inScope(async (scope) => {
      const { client } = await start(scope);
      const instance = await client.workflows.WAIT.create();
      const result = instance.result({ timeout: "20 seconds" });
      await until(async () => (await instance.status()).status === "waiting", "waiting");
      await instance.sendEvent({ type: "go", payload: "old" });
      await instance.restart();
      await instance.sendEvent({ type: "go", payload: 1 });
      await instance.sendEvent({ type: "go", payload: 2 });
      expect(await result).toEqual([1, 2]);
    }));
});

test("a value that cannot travel is refused before it is sent", () =>
  inScope(async (scope) => {
    const { client, sent } = await start(scope);
    const params = { callback: () => 1 };
    await expect(client.workflows.WAIT.create({ params })).rejects.toMatchObject({
      code: "INVALID_PARAMS",
      message: "params: cannot store a function at $.callback",
    });
    expect(sent.filter((each) => each.startsWith("POST"))).toEqual([]);
  }));

describe("createClient refuses", () => {
  const wrongStart = "baseUrl must begin with http:// or https:// and a host, or be a path";
  test.each([
    ["localhost:3000", wrongStart],
    ["ftp://x", wrongStart],
    ["", wrongStart],
    ["example.org/api", wrongStart],
    ["http://", wrongStart],
    ["http://a b/api", wrongStart],
    ["http://x:99999", wrongStart],
    ["http://x/api?tenant=1", "baseUrl must not have a query or a hash"],
    ["http://x/api#top", "baseUrl must not have a query or a hash"],
    ["/api?", "baseUrl must not have a query or a hash"],
    ["http://me:hunter2@x/api", "baseUrl must not hold a password"],
    [undefined, "baseUrl must be a string, got undefined"],
  ])("the base URL %j", (baseUrl, message) => {
    const create = () => createClient({ baseUrl: baseUrl as string });
    expect(create).toThrow(ValidationError);
    expect(create).toThrow(message);
  });

  test("a base path that is not a path", () => {
    const create = (basePath: string) => () => createClient({ baseUrl: "http://x", basePath });
    expect(create("api")).toThrow('basePath must be a path such as "/api", got "api"');
    expect(create(5 as never)).toThrow("basePath must be a path");
    expect(create("")).not.toThrow();
  });

  test("no valid base URL", async () => {
    const right = {
      "/api": "/api/workflows",
      "/api/": "/api/workflows",
      "//x/api": "//x/api/workflows",
      "http://[::1]:3000": "http://[::1]:3000/api/workflows",
      "HTTPS://x/a/b": "HTTPS://x/a/b/workflows",
    };
    for (const [baseUrl, expected] of Object.entries(right)) {
      let asked = "";
      const answer: ClientFetch = async (url) => {
        asked = url;
        return Response.json({ workflows: [] });
      };
      await createClient({ baseUrl, fetch: answer }).registered();
      expect(asked).toBe(expected);
    }
  });
});
