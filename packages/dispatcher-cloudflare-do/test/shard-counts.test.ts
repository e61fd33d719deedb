import { describe, test } from "vitest";
import { aHost } from "./support/host.js";
import { Api, idsIn, spread } from "./support/shards.js";

const PATIENCE = { timeout: 40_000, interval: 50 };

describe.concurrent("the number of objects", () => {
  test("cannot change: all refuse, and nothing is lost", async ({ expect, onTestFinished }) => {
    const host = await aHost({ onTestFinished }, spread({ shards: 2 }));
    const ids = Array.from({ length: 8 }, (_, n) => `kept-${n}`);
    for (const id of ids) await host.do("create", { binding: "WAITER", id });
    await host.stop();
    for (const sharding of [{ shards: 3 }, { shards: 1 }, { shardBy: "workflow" }]) {
      await host.start(spread(sharding).bindings);
      for (const id of [...ids, "new-1", "new-2", "new-3"]) {
        await expect(host.do("create", { binding: "WAITER", id })).rejects.toThrow(
          "IncompatibleDatabaseError: the instances of this namespace were spread with shards: 2",
        );
      }
      const answer = await host.fetch("/api/workflows/waiter/instances");
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({ code: "STORE_UNAVAILABLE" });
      await host.stop();
    }
    await host.start(spread({ shards: 2 }).bindings);
    // Objects that were asked by mistake have no alarm left.
    for (const object of ["pawl-2", "pawl:waiter"]) {
      expect(await host.do("alarmAt", { object })).toBe(null);
    }
    for (const id of ids) {
      await host.do("send", { binding: "WAITER", id, params: id });
      expect(await host.do("result", { binding: "WAITER", id })).toBe(id);
    }
  });

  test("cannot grow from one", async ({ expect, onTestFinished }) => {
    const host = await aHost({ onTestFinished }, spread({}));
    await host.do("create", { binding: "WAITER", id: "kept" });
    await host.stop();
    await host.start(spread({ shards: 2 }).bindings);
    for (const id of ["kept", "new-1", "new-2"]) {
      await expect(host.do("create", { binding: "WAITER", id })).rejects.toThrow(
        "spread with shards: 1",
      );
    }
  });

  test("needs the namespace: objects without it refuse, and say so", async ({
    expect,
    onTestFinished,
  }) => {
    const { bindings, ...options } = spread({ shards: 2 });
    const nameless = { ...options, bindings: { ...bindings, NAMELESS: "1" } };
    const host = await aHost({ onTestFinished }, nameless);
    await expect(host.do("create", { binding: "WAITER", id: "a" })).rejects.toThrow(
      "shards: 2 needs namespace, such as env.PAWL",
    );
    expect((await new Api(host).ask("GET", "/workflows")).status).toBe(503);
  });

  test("by workflow, runs of a workflow that is removed and comes back go on by themselves", async ({
    expect,
    onTestFinished,
  }) => {
    const { bindings, ...options } = spread({ shardBy: "workflow" });
    const host = await aHost({ onTestFinished }, { ...options, bindings });
    await host.do("create", { binding: "SLEEPER", id: "nap" });
    await host.stop();
    await host.start({ ...bindings, SLEEPLESS: "1" });
    // No request comes, but the object's alarm does, again and again.
    const refusals = () => host.ledger.filter((line) => line === "start.failed").length;
    await expect.poll(refusals, PATIENCE).toBeGreaterThan(1);
    await host.stop();
    expect(host.ledger).not.toContain("nap woke");
    await host.start(bindings);
    await expect.poll(() => host.ledger, PATIENCE).toContain("nap woke");
  });

  test("can be one for each workflow", async ({ expect, onTestFinished }) => {
    const host = await aHost({ onTestFinished }, spread({ shardBy: "workflow" }));
    const api = new Api(host);
    for (let n = 0; n < 5; n++) {
      await host.do("create", { binding: "WAITER", id: `w-${n}` });
      await api.ask("POST", "/workflows/child/instances", { id: `c-${n}`, params: n });
    }
    const params = { children: 4, how: "throws" };
    await host.do("create", { binding: "PARENT", id: "p", params, unrouted: true });
    const made = await host.do<string[]>("result", { binding: "PARENT", id: "p" });
    for (const id of made) await host.do("result", { binding: "CHILD", id });
    const [first, parents, children, waiters] = await idsIn(host, [
      "pawl",
      "pawl:parent",
      "pawl:child",
      "pawl:waiter",
    ]);
    expect(first).toEqual([]);
    expect(parents).toEqual(["p"]);
    expect(children?.toSorted()).toEqual(["c-0", "c-1", "c-2", "c-3", "c-4", ...made].toSorted());
    expect(waiters).toHaveLength(5);
    const listed = await api.pages("/workflows/waiter/instances?pageSize=2&order=oldest");
    expect(listed).toEqual(["w-0", "w-1", "w-2", "w-3", "w-4"]);
    expect((await api.ask("GET", "/workflows/nobody/instances")).body.code).toBe(
      "WORKFLOW_NOT_FOUND",
    );
  });
});
