import { setTimeout as pause } from "node:timers/promises";
import { defineWorkflow, NonRetryableError, WorkflowError } from "pawl";
import { createClient } from "pawl/client";
import { expect, test } from "vitest";
import type { Store } from "../../src/store/store.js";
import { inScope, type Scope } from "../support/scope.js";
import { until } from "../support/until.js";
import { served } from "./server.js";

class OutOfStock extends Error {
  override name = "OutOfStock";
  code = "E_STOCK";
}

const workflows = {
  ORDER: defineWorkflow({
    name: "order",
    async run(event, step) {
      const charged = await step.do("charge", () => ({ at: new Date(0), params: event.payload }));
      const { payload } = await step.waitForEvent("approval", { type: "approval" });
      return { charged, payload };
    },
  }),
  SLOW: defineWorkflow({
    name: "slow/one",
    async run(_event, step) {
      await step.do("sleep", () => pause(10_000));
    },
  }),
  BAD: defineWorkflow({
    name: "bad",
    async run(_event, step) {
      await step.do("pick", () => {
        throw Object.assign(new NonRetryableError("none left"), {
          cause: new OutOfStock("shelf 3"),
        });
      });
    },
  }),
  BIG: defineWorkflow({ name: "big", run: async () => "x".repeat(5_000) }),
} as const;

export type OpenStore = (scope: Scope) => Promise<Store>;

/** The essential routes, through a real server, on any store. */
export function routesWork(openStore: OpenStore): void {
  const start = async (scope: Scope) => served(scope, { workflows, store: await openStore(scope) });

  test("the routes take an instance from its start to its end", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const orders = `${url}/workflows/order/instances`;

      expect(await get(`${url}/workflows`)).toEqual([
        200,
        {
          workflows: [
            { name: "order", binding: "ORDER" },
            { name: "slow/one", binding: "SLOW" },
            { name: "bad", binding: "BAD" },
            { name: "big", binding: "BIG" },
          ],
        },
      ]);
      const created = { id: "o1", details: { status: "queued" } };
      expect(await post(orders, { id: "o1", params: { tags: tagged("Set", [1]) } })).toEqual([
        200,
        created,
      ]);
      expect(await post(orders, { id: "o1" })).toMatchObject([
        409,
        { code: "INSTANCE_ID_ALREADY_EXISTS" },
      ]);
      await until(
        async () => (await get(`${orders}/o1`))[1].details.status === "waiting",
        "waiting",
      );
      expect(await post(`${orders}/o1/pause`)).toEqual([200, { ok: true }]);
      expect(await get(`${orders}/o1`)).toEqual([200, { id: "o1", details: { status: "paused" } }]);
      const approval = { type: "approval", payload: { by: "Grace" }, id: "once" };
      expect(await post(`${orders}/o1/events`, approval)).toEqual([
        200,
        { status: { status: "paused" } },
      ]);
      expect((await post(`${orders}/o1/events`, approval))[0]).toBe(200);
      expect(await post(`${orders}/o1/resume`)).toEqual([200, { ok: true }]);

      const output = {
        charged: {
          at: tagged("Date", "1970-01-01T00:00:00.000Z"),
          params: { tags: tagged("Set", [1]) },
        },
        payload: { by: "Grace" },
      };
      const done = { status: "complete", output };
      await until(async () => (await get(`${orders}/o1`))[1].details.status === "complete", "done");
      expect(await get(`${orders}/o1`)).toEqual([200, { id: "o1", details: done }]);
      const [, list] = await get(orders);
      expect(list).toMatchObject({
        instances: [{ id: "o1", runNumber: 1, details: done }],
        hasNextPage: false,
      });
      const [, history] = await get(`${orders}/o1/history`);
      expect(history).toMatchObject({
        runNumber: 1,
        runs: [{ runNumber: 1, ...done }],
        entries: [
          { kind: "step", name: "charge", status: "completed", attempts: [{ n: 1 }] },
          { kind: "step", name: "approval", status: "completed" },
          { kind: "event", type: "approval", payload: { by: "Grace" }, consumedByStep: 2 },
        ],
      });
      expect(history.entries).toHaveLength(3);

      expect(await post(`${orders}/o1/terminate`)).toMatchObject([
        409,
        { code: "INSTANCE_TERMINAL" },
      ]);
      expect(await post(`${orders}/o1/events`, approval)).toEqual([200, { status: done }]);
      expect(await post(`${orders}/o1/events`, { ...approval, id: "other" })).toMatchObject([
        409,
        { code: "INSTANCE_TERMINAL" },
      ]);
      expect(await post(`${orders}/o1/restart`)).toEqual([200, { ok: true }]);
      expect(await post(`${orders}/o1/terminate`)).toEqual([200, { ok: true }]);
      expect((await get(`${orders}/o1/history`))[1].runs).toMatchObject([
        { runNumber: 2, status: "terminated" },
        { runNumber: 1, status: "complete" },
      ]);
    }));

  test("lists have pages and filters, and leave out large outputs", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const big = `${url}/workflows/big/instances`;
      const ids = Array.from({ length: 5 }, (_, i) => `b${i}`);
      const batch = { instances: ids.map((id) => ({ id })) };
      expect((await post(`${big}/batch`, batch))[1].instances).toHaveLength(5);
      expect(await post(`${big}/batch`, batch)).toEqual([200, { instances: [] }]);
      await until(
        async () => (await get(`${big}?status=complete`))[1].instances.length === 5,
        "all complete",
      );
      const seen: string[] = [];
      for (let cursor = ""; ;) {
        const [status, page] = await get(`${big}?pageSize=2&order=oldest&status=complete${cursor}`);
        expect(status).toBe(200);
        seen.push(...page.instances.map(({ id }: { id: string }) => id));
        expect(page.instances[0].details).toEqual({ status: "complete", outputTruncated: true });
        if (!page.hasNextPage) break;
        cursor = `&cursor=${page.cursor}`;
      }
      expect(seen.toSorted()).toEqual(ids);
      expect((await get(`${big}/b0`))[1].details.output).toHaveLength(5_000);
    }));

  test("a request sent again with its key happens once", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const orders = `${url}/workflows/order/instances`;
      const key = (name: string) => ({ "idempotency-key": name });
      const first = await post(orders, { id: "o1" }, key("a"));
      expect(await post(orders, { id: "o1" }, key("a"))).toEqual(first);
      expect((await post(orders, { id: "o1" }, key("b")))[0]).toBe(409);
      const unnamed = await post(orders, {}, key("c"));
      expect(await post(orders, {}, key("c"))).toEqual(unnamed);
      for (const [other, name] of [
        [{ id: "o1", params: 1 }, "a"],
        [{ params: 1 }, "c"],
      ] as const) {
        expect(await post(orders, other, key(name))).toEqual([
          422,
          {
            code: "IDEMPOTENCY_KEY_REUSED",
            message: `Idempotency-Key "${name}" was used before, with another body`,
          },
        ]);
      }
      const batch = { instances: [{ id: "o1" }, { id: "o2" }] };
      for (const _ of [1, 2]) {
        const [, { instances }] = await post(`${orders}/batch`, batch, key("d"));
        expect(instances).toEqual([{ id: "o2", details: { status: "queued" } }]);
      }
      const other = { instances: [{ id: "o2", params: 1 }, { id: "o3" }] };
      expect((await post(`${orders}/batch`, other, key("d")))[1].instances).toMatchObject([
        { id: "o3" },
      ]);
      for (const _ of [1, 2]) await post(`${orders}/o1/restart`, {}, key("e"));
      expect((await get(`${orders}/o1/history`))[1].runNumber).toBe(2);
      for (const _ of [1, 2]) {
        expect((await post(`${orders}/o2/terminate`, {}, key("f")))[0]).toBe(200);
      }
      // A key belongs to one kind of request.
      expect((await post(`${orders}/o2/restart`, {}, key("f")))[0]).toBe(200);
      expect((await get(`${orders}/o2/history`))[1].runNumber).toBe(2);
    }));

  test("the stream tells what happens, goes on from a cursor, and ends", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const order = `${url}/workflows/order/instances/o1`;
      await post(`${url}/workflows/order/instances`, { id: "o1" });
      const whole = fetch(`${order}/events-stream`);
      await until(async () => (await get(order))[1].details.status === "waiting", "waiting");
      await post(`${order}/events`, { type: "approval" });
      const messages = messagesIn(await (await whole).text());
      expect(messages.at(-1)).toMatchObject({ event: "status", data: { status: "complete" } });
      expect(
        messages.filter(({ data }) => data.status === "completed").map(({ data }) => data.name),
      ).toEqual(["charge", "approval"]);

      for (const [i, { id }] of messages.entries()) {
        const again = await fetch(`${order}/events-stream`, { headers: { "last-event-id": id } });
        const isLast = i === messages.length - 1;
        expect(again.status).toBe(isLast ? 204 : 200);
        const rest = messagesIn(await again.text());
        if (!isLast) expect(rest.at(-1)).toEqual(messages.at(-1));
        // At most the messages that were not known to be settled come again.
        expect(rest.length).toBeLessThanOrEqual(messages.length - i);
      }
      expect(await get(`${order}/events-stream?cursor=x${messages[0]?.id}`)).toMatchObject([
        400,
        { code: "INVALID_CURSOR" },
      ]);
      expect(await get(`${order}2/events-stream`)).toMatchObject([
        404,
        { code: "INSTANCE_NOT_FOUND" },
      ]);
    }));

  test("forged cursors do no harm", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const orders = `${url}/workflows/order/instances`;
      await post(`${orders}/batch`, { instances: [{ id: "o1" }, { id: "o2" }] });
      await until(
        async () => (await get(`${orders}/o1`))[1].details.status === "waiting",
        "waiting",
      );
      await post(`${orders}/o1/events`, { type: "other" });
      const stream = (await fetch(`${orders}/o1/events-stream`)).body!.getReader();
      const { value } = await stream.read();
      await stream.cancel();
      const pages = [
        [`${orders}?pageSize=1&`, (await get(`${orders}?pageSize=1`))[1].cursor],
        [
          `${orders}/o1/history?pageSize=1&`,
          (await get(`${orders}/o1/history?pageSize=1`))[1].cursor,
        ],
        [`${orders}/o1/events-stream?`, messagesIn(new TextDecoder().decode(value))[0]!.id],
      ] as const;
      const hostile = [
        -1,
        0,
        2 ** 31,
        -(2 ** 31),
        2 ** 53,
        1.5,
        null,
        "",
        "\0",
        "\ud800",
        "x",
        [],
        {},
      ];
      const forged = pages.flatMap(([page, cursor]) => {
        const parts = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
        return parts.flatMap((_, i) => hostile.map((part) => page + cursorOf(parts.with(i, part))));
      });
      expect(forged.length).toBeGreaterThan(150);
      for (const each of [...forged, `${orders}/o1/history?runNumber=${10 ** 14}`]) {
        const response = await fetch(each);
        expect([200, 400], each).toContain(response.status);
        await response.body?.cancel();
      }
    }));

  test("a batch of 100 is answered while every step sleeps ten seconds", () =>
    inScope(async (scope) => {
      const { url } = await start(scope);
      const slow = `${url}/workflows/slow%2Fone/instances`;
      const instances = Array.from({ length: 100 }, (_, i) => ({ id: `s${i}` }));
      const since = performance.now();
      const [status, answer] = await post(`${slow}/batch`, { instances });
      const tookMs = performance.now() - since;
      expect([status, answer.instances.length]).toEqual([200, 100]);
      // This takes under a second on a quiet machine. A step takes ten.
      expect(tookMs).toBeLessThan(5_000);
    }));

  test("the client offers the bindings over HTTP", () =>
    inScope(async (scope) => {
      const { url, pawl } = await start(scope);
      const client = createClient<typeof pawl>({ baseUrl: url });
      const params = { when: new Date(5), tags: new Map([["a", 1n]]) };
      const order = await client.workflows.ORDER.create({ id: "o1", params });
      await expect(client.workflows.ORDER.create({ id: "o1" })).rejects.toMatchObject({
        name: "WorkflowError",
        code: "INSTANCE_ID_ALREADY_EXISTS",
        status: 409,
      });
      const result = order.result({ timeout: "20 seconds" });
      await order.sendEvent({ type: "approval", payload: new Set([undefined]) });
      const output = { charged: { at: new Date(0), params }, payload: new Set([undefined]) };
      expect(await result).toEqual(output);
      expect(await order.status()).toEqual({ status: "complete", output });
      expect(await client.list("order")).toEqual(await pawl.list("order"));
      expect(await client.history("order", "o1")).toEqual(await pawl.history("order", "o1"));

      const bad = await client.workflows.BAD.create();
      const error = await bad.result().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(NonRetryableError);
      expect(error).toMatchObject({
        message: "none left",
        cause: { name: "OutOfStock", message: "shelf 3", code: "E_STOCK" },
      });
      expect((await client.workflows.ORDER.createBatch([{ id: "o1" }, { id: "o2" }])).length).toBe(
        1,
      );
      const second = await client.workflows.ORDER.get("o2");
      await second.pause();
      await until(async () => (await second.status()).status === "paused", "paused");
      await second.resume();
      await second.restart();
      await second.terminate();
      await expect(second.result()).rejects.toThrow('instance "o2" was terminated');
      await expect(client.workflows.ORDER.get("o3")).rejects.toBeInstanceOf(WorkflowError);
    }));
}

function cursorOf(parts: readonly unknown[]): string {
  return `cursor=${Buffer.from(JSON.stringify(parts)).toString("base64url")}`;
}

export function tagged(tag: string, value: unknown) {
  return { $pawl: tag, value };
}

type Message = { id: string; event: string; data: Record<string, unknown> };

export function messagesIn(text: string): Message[] {
  return text
    .split("\n\n")
    .filter((block) => block.startsWith("id: "))
    .map((block) => {
      const [id, event, data] = block.split("\n").map((line) => line.replace(/^\w+: /, ""));
      return { id: id!, event: event!, data: JSON.parse(data!) };
    });
}

// oxlint-disable-next-line typescript/no-explicit-any
type Answer = [status: number, body: any];

export async function get(url: string, headers: Record<string, string> = {}): Promise<Answer> {
  return answerOf(await fetch(url, { headers }));
}

export async function post(
  url: string,
  body: unknown = {},
  headers: Record<string, string> = {},
): Promise<Answer> {
  return answerOf(await fetch(url, { method: "POST", body: JSON.stringify(body), headers }));
}

async function answerOf(response: Response): Promise<Answer> {
  const text = await response.text();
  return [response.status, text === "" ? null : JSON.parse(text)];
}
