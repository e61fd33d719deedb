import { placeOf } from "pawl/durable-object";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { HostProcess } from "./support/host.js";
import { Api, idsIn, spread } from "./support/shards.js";

const SHARDS = 4;
const PATIENCE = { timeout: 30_000, interval: 50 };
const objects = Array.from({ length: SHARDS }, (_, n) => (n === 0 ? "pawl" : `pawl-${n}`));

describe("instances over four objects, in workerd", () => {
  let host: HostProcess;

  beforeAll(async () => {
    host = await HostProcess.start(spread({ shards: SHARDS }));
  });
  afterAll(() => host.end());

  test("are each in the one object that their id tells, and run there", async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `one-${n}`);
    await Promise.all(ids.map((id) => host.do("create", { binding: "CHILD", id, params: id })));
    for (const id of ids) expect(await host.do("result", { binding: "CHILD", id })).toBe(id);
    const found = await idsIn(host, objects);
    for (const [place, here] of found.entries()) {
      const expected = ids.filter((id) => placeOf({ workflow: "child", id }, SHARDS) === place);
      expect(expected.length).toBeGreaterThan(0);
      expect(here.toSorted()).toEqual(expected.toSorted());
    }
  });

  test("have the hooks of their object called", async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `one-${n}`);
    await expect
      .poll(() => ids.filter((id) => !host.ledger.includes(`${id} finished`)), PATIENCE)
      .toEqual([]);
  });

  test("get an id that leads to the object that was asked, if none is given", async () => {
    for (let n = 0; n < 8; n++) {
      const id = await host.do<string>("create", { binding: "CHILD", params: n });
      expect(await host.do("result", { binding: "CHILD", id })).toBe(n);
    }
    const first = await host.do("create", { binding: "CHILD", params: 0, unrouted: true });
    expect(await host.do("ids", { object: "pawl" })).toContain(first);
  });

  test.each([false, true])(
    "bindings reach any instance, even for callers that do not know of shards: %s",
    async (unrouted) => {
      for (let n = 0; n < 6; n++) {
        const of = { binding: "WAITER", id: `word-${String(unrouted)}-${n}`, unrouted };
        await host.do("create", of);
        await host.do("control", { ...of, method: "pause" });
        await host.do("send", { ...of, params: n });
        await host.do("control", { ...of, method: "resume" });
        expect(await host.do("result", of)).toBe(n);
      }
    },
  );

  describe.each([
    { who: "routed", headers: {} },
    { who: "not routed", headers: { "x-unrouted": "1" } },
  ])("the HTTP API, $who", ({ who, headers }) => {
    const prefix = who.replaceAll(" ", "-");
    const waiters = "/workflows/waiter/instances";
    let api: Api;

    beforeAll(() => {
      api = new Api(host, headers);
    });

    test("has its workflows, its document, and nothing else", async () => {
      const workflows = await api.ask("GET", "/workflows");
      expect(workflows.body.workflows.map(({ name }) => name)).toContain("child");
      expect((await api.ask("GET", "/openapi.json")).status).toBe(200);
      expect((await api.ask("GET", "/nothing")).body.code).toBe("NOT_FOUND");
      expect((await api.ask("GET", "/workflows/nobody/instances")).body.code).toBe(
        "WORKFLOW_NOT_FOUND",
      );
      expect((await api.ask("GET", `${waiters}/nobody`)).body.code).toBe("INSTANCE_NOT_FOUND");
    });

    test("creates, controls and shows instances", async () => {
      const ids = Array.from({ length: 6 }, (_, n) => `${prefix}-${n}`);
      for (const id of ids) {
        const one = `${waiters}/${id}`;
        expect((await api.ask("POST", waiters, { id })).body.id).toBe(id);
        expect((await api.ask("POST", waiters, { id })).body.code).toBe(
          "INSTANCE_ID_ALREADY_EXISTS",
        );
        for (const verb of ["pause", "resume", "terminate", "restart"]) {
          expect((await api.ask("POST", `${one}/${verb}`)).status).toBe(200);
        }
        await api.ask("POST", `${one}/events`, { type: "word", payload: id });
        await expect
          .poll(async () => (await api.ask("GET", one)).body.details, PATIENCE)
          .toEqual({ status: "complete", output: id });
        const history = await api.ask("GET", `${one}/history`);
        expect(history.body.runs).toHaveLength(2);
      }
    });

    test("streams what happens to an instance, to its end", async () => {
      for (let n = 0; n < 4; n++) {
        const id = `${prefix}-stream-${n}`;
        await api.ask("POST", waiters, { id });
        const stream = api.text(`${waiters}/${id}/events-stream`);
        await api.ask("POST", `${waiters}/${id}/events`, { type: "word", payload: n });
        expect(await stream).toContain('"status":"complete"');
      }
    });

    test("carries out a keyed request once", async () => {
      const keyed = (body: unknown) =>
        api.ask("POST", waiters, body, { "idempotency-key": `${prefix}-key` });
      const first = await keyed({ params: 1 });
      expect(first.status).toBe(200);
      for (let n = 0; n < 4; n++) expect((await keyed({ params: 1 })).body).toEqual(first.body);
      expect((await keyed({ params: 2 })).body.code).toBe("IDEMPOTENCY_KEY_REUSED");
      const batch = {
        instances: Array.from({ length: 8 }, (_, n) => ({ id: `${prefix}-keyed-${n}` })),
      };
      const send = () =>
        api.ask("POST", `${waiters}/batch`, batch, {
          "idempotency-key": `${prefix}-batch`,
        });
      const made = await send();
      expect(made.body.instances).toHaveLength(8);
      expect((await send()).body).toEqual(made.body);
    });
  });

  test("a batch is spread, answered in its order, and skips ids that exist", async () => {
    const ids = Array.from({ length: 30 }, (_, n) => `batch-${n}`);
    await host.do("create", { binding: "EVEN", id: "batch-7", params: 2 });
    const batch = ids.map((id) => ({ id, params: 4 }));
    const made = await host.do("createBatch", { binding: "EVEN", batch });
    expect(made).toEqual(ids.filter((id) => id !== "batch-7"));
  });

  test("a bad item of a batch leaves no rows in any object", async () => {
    const before = (await idsIn(host, objects)).flat().length;
    const good = Array.from({ length: 20 }, (_, n) => ({ id: `bad-${n}`, params: 2 }));
    for (const bad of [
      { id: "bad-last", params: 3 },
      { id: "no spaces", params: 2 },
    ]) {
      const asked = host.do("createBatch", { binding: "EVEN", batch: [...good, bad] });
      await expect(asked).rejects.toThrow(/must be even|may only have letters/);
    }
    expect((await idsIn(host, objects)).flat()).toHaveLength(before);
  });

  test("a batch may be as large as workers send in one call, and no larger", async () => {
    expect(await host.do("createLarge", { id: "large", letter: "x", count: 30 })).toBe(30);
    for (const letter of ["x", "Ā"]) {
      const asked = host.do("createLarge", { id: "larger", letter, count: 33 });
      await expect(asked).rejects.toThrow("a batch may have at most");
    }
  });

  test("an unreachable object is reported as such, and its instances are found later", async () => {
    const ids = Array.from({ length: 12 }, (_, n) => `away-${n}`);
    for (const object of objects) await host.do("lose", { object, answers: 100 });
    const batch = ids.map((id) => ({ id, params: 2 }));
    const asked = host.do("createBatch", { binding: "EVEN", batch });
    await expect(asked).rejects.toThrow("another object cannot be reached");
    const page = await new Api(host).ask("GET", "/workflows/even/instances");
    expect([page.status, page.body.code]).toEqual([503, "STORE_UNAVAILABLE"]);
    for (const object of objects) await host.do("lose", { object, answers: 0 });
    await host.do("createBatch", { binding: "EVEN", batch });
    for (const id of ids) expect(await host.do("result", { binding: "EVEN", id })).toBe(2);
  });

  test.each(["newest", "oldest"])("a list has every row once, %s first", async (order) => {
    const workflow = "/workflows/even/instances";
    const api = new Api(host);
    const ids = (await idsIn(host, objects)).flat().filter((id) => id.startsWith("batch-"));
    let n = 0;
    const found = await api.pages(`${workflow}?order=${order}&pageSize=4`, () =>
      host.do("create", { binding: "EVEN", id: `${order}-late-${n++}`, params: 2 }),
    );
    expect(new Set(found).size).toBe(found.length);
    expect(found.filter((id) => id.startsWith("batch-")).toSorted()).toEqual(ids.toSorted());
    const late = found.filter((id) => id.startsWith(`${order}-late-`));
    // The last one came after the last page.
    expect(late.length).toBe(order === "newest" ? 0 : n - 1);
    const complete = await api.pages(`${workflow}?order=${order}&pageSize=7&status=complete`);
    expect(complete.filter((id) => id.startsWith("batch-")).toSorted()).toEqual(ids.toSorted());
  });

  test("a list refuses cursors that are not its own", async () => {
    const api = new Api(host);
    const list = "/workflows/even/instances?pageSize=2";
    const { body } = await api.ask("GET", list);
    for (const query of [
      `${list}&cursor=garbage`,
      `${list}&order=oldest&cursor=${body.cursor}`,
      `${list}&status=complete&cursor=${body.cursor}`,
      `/workflows/child/instances?pageSize=2&cursor=${body.cursor}`,
    ]) {
      const refused = await api.ask("GET", query);
      expect([refused.status, refused.body.code]).toEqual([400, "INVALID_CURSOR"]);
    }
  });

  describe("children of a step are made once, wherever they belong", () => {
    const childrenOf = async (ids: readonly string[]) => {
      const found = await idsIn(host, objects);
      return found.map((here) => here.filter((id) => ids.includes(id)).length);
    };
    const runsOf = (id: string) => host.ledger.filter((line) => line === `${id} ran`).length;

    test("when its body is tried again", async () => {
      const params = { children: 12, how: "throws" };
      await host.do("create", { binding: "PARENT", id: "tries", params });
      const made = await host.do<string[]>("result", { binding: "PARENT", id: "tries" });
      const counts = await childrenOf(made);
      expect(counts.filter((count) => count > 0).length).toBeGreaterThan(1);
      expect(counts.reduce((sum, count) => sum + count)).toBe(12);
      for (const id of made) await host.do("result", { binding: "CHILD", id });
      expect(made.map(runsOf)).toEqual(made.map(() => 1));
    });

    test("when its object is evicted, or that of a child", async () => {
      const ids = Array.from({ length: 8 }, (_, n) => `evicted-${n}`);
      const params = { children: 8, ids, how: "hangs" };
      await host.do("create", { binding: "PARENT", id: "evicted", params });
      await expect.poll(() => host.ledger.includes("evicted made 1"), PATIENCE).toBe(true);
      for (const object of objects) await host.do("evict", { object });
      expect(await host.do("result", { binding: "PARENT", id: "evicted" })).toEqual(ids);
      for (const id of ids) await host.do("result", { binding: "CHILD", id });
      expect((await childrenOf(ids)).reduce((sum, count) => sum + count)).toBe(8);
    });

    test("when the answers of their objects are lost", async () => {
      const ids = Array.from({ length: 8 }, (_, n) => `lost-${n}`);
      for (const object of objects) await host.do("lose", { object, answers: 2 });
      await host.do("create", { binding: "PARENT", id: "loser", params: { children: 8, ids } });
      expect(await host.do("result", { binding: "PARENT", id: "loser" })).toEqual(ids);
      for (const object of objects) await host.do("lose", { object, answers: 0 });
      // The body did not notice the losses.
      expect(host.ledger.filter((line) => line.startsWith("loser made"))).toEqual(["loser made 1"]);
      for (const id of ids) await host.do("result", { binding: "CHILD", id });
      expect(ids.map(runsOf)).toEqual(ids.map(() => 1));
      expect((await childrenOf(ids)).reduce((sum, count) => sum + count)).toBe(8);
    });

    test("but anew by each run: a restarted parent makes its own", async () => {
      await host.do("create", { binding: "PARENT", id: "again", params: { children: 5 } });
      const first = await host.do<string[]>("result", { binding: "PARENT", id: "again" });
      await host.do("control", { binding: "PARENT", id: "again", method: "restart" });
      const second = await host.do<string[]>("result", { binding: "PARENT", id: "again" });
      expect(new Set([...first, ...second]).size).toBe(10);
    });

    test("but a taken id is an error of the parent", async () => {
      await host.do("create", { binding: "CHILD", id: "taken", params: 0 });
      const ids = ["taken"];
      await host.do("create", { binding: "PARENT", id: "late", params: { children: 1, ids } });
      const asked = host.do("result", { binding: "PARENT", id: "late" });
      await expect(asked).rejects.toThrow('has an instance "taken" already');
    });
  });
});
