import { describe, expect, it } from "vitest";
import { EngineConnections, type Connection } from "./engine-connections.js";

function setUp(size: number) {
  const opened: Connection[] = [];
  const closed: Connection[] = [];
  const owned = new EngineConnections(size, async () => {
    const connection: Connection = { broken: false, close: () => void closed.push(connection) };
    opened.push(connection);
    return connection;
  });
  return { owned, opened, closed };
}

function gate() {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => void (open = resolve));
  return { open, passed };
}

describe("engine connections", () => {
  it("are no more than allowed, and serve callers in order", async () => {
    const { owned, opened } = setUp(2);
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3, 4, 5].map((n) => owned.use("engine", async () => void order.push(n))),
    );
    expect(order).toEqual([1, 2, 3, 4, 5]);
    expect(opened.length).toBeLessThanOrEqual(2);
  });

  it("include one for the engine while requests hang", async () => {
    const { owned } = setUp(2);
    const hanging = gate();
    const requests = [1, 2, 3].map(() => owned.use("request", () => hanging.passed));
    expect(await owned.use("engine", async () => "done")).toBe("done");
    hanging.open();
    await Promise.all(requests);
  });

  it("let a request in beside an engine that always has more to do", async () => {
    const { owned } = setUp(2);
    const order: string[] = [];
    const engine = Array.from({ length: 10 }, () =>
      owned.use("engine", async () => void order.push("engine")),
    );
    await Promise.all([...engine, owned.use("request", async () => void order.push("request"))]);
    expect(order.indexOf("request")).toBeLessThan(5);
  });

  it("serve requests even if there is only one", async () => {
    const { owned } = setUp(1);
    expect(await owned.use("request", async () => "done")).toBe("done");
  });

  it("are replaced when broken, whether in use or idle", async () => {
    const { owned, opened, closed } = setUp(1);
    await owned.use("engine", async (connection) => void (connection.broken = true));
    await owned.use("engine", async () => {});
    const idle = opened[1];
    if (idle !== undefined) idle.broken = true;
    await owned.use("engine", async () => {});
    expect(opened.length).toBe(3);
    expect(closed).toEqual(opened.slice(0, 2));
  });

  it("work again after a failure", async () => {
    const { owned } = setUp(1);
    await expect(owned.use("engine", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await owned.use("engine", async () => "done")).toBe("done");
  });

  it("close at once when idle, and when their work is done otherwise", async () => {
    const { owned, closed } = setUp(2);
    const busy = gate();
    const work = owned.use("engine", () => busy.passed);
    await owned.use("engine", async () => {});
    owned.close();
    expect(closed.length).toBe(1);
    busy.open();
    await work;
    expect(closed.length).toBe(2);
    await expect(owned.use("engine", async () => {})).rejects.toThrow("closed");
  });
});
