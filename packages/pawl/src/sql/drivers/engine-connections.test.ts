import { describe, expect, it } from "vitest";
import { EngineConnections, type Connection } from "./engine-connections.js";

function setUp(size: number) {
  const opened: Connection[] = [];
  const closed: Connection[] = [];
  const lanes = new EngineConnections(size, async () => {
    const connection: Connection = { broken: false, close: () => void closed.push(connection) };
    opened.push(connection);
    return connection;
  });
  return { lanes, opened, closed };
}

function gate() {
  let open = (): void => {};
  const passed = new Promise<void>((resolve) => void (open = resolve));
  return { open, passed };
}

describe("engine connections", () => {
  it("are no more than allowed, and serve callers in order", async () => {
    const { lanes, opened } = setUp(2);
    const order: number[] = [];
    await Promise.all(
      [1, 2, 3, 4, 5].map((n) => lanes.use("engine", async () => void order.push(n))),
    );
    expect(order).toEqual([1, 2, 3, 4, 5]);
    expect(opened.length).toBeLessThanOrEqual(2);
  });

  it("include one for the engine while requests hang", async () => {
    const { lanes } = setUp(2);
    const hanging = gate();
    const requests = [1, 2, 3].map(() => lanes.use("request", () => hanging.passed));
    expect(await lanes.use("engine", async () => "done")).toBe("done");
    hanging.open();
    await Promise.all(requests);
  });

  it("let a request in beside an engine that always has more to do", async () => {
    const { lanes } = setUp(2);
    const order: string[] = [];
    const engine = Array.from({ length: 10 }, () =>
      lanes.use("engine", async () => void order.push("engine")),
    );
    await Promise.all([...engine, lanes.use("request", async () => void order.push("request"))]);
    expect(order.indexOf("request")).toBeLessThan(5);
  });

  it("serve requests even if there is only one", async () => {
    const { lanes } = setUp(1);
    expect(await lanes.use("request", async () => "done")).toBe("done");
  });

  it("are replaced when broken, whether in use or idle", async () => {
    const { lanes, opened, closed } = setUp(1);
    await lanes.use("engine", async (connection) => void (connection.broken = true));
    await lanes.use("engine", async () => {});
    const idle = opened[1];
    if (idle !== undefined) idle.broken = true;
    await lanes.use("engine", async () => {});
    expect(opened.length).toBe(3);
    expect(closed).toEqual(opened.slice(0, 2));
  });

  it("work again after a failure", async () => {
    const { lanes } = setUp(1);
    await expect(lanes.use("engine", () => Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(await lanes.use("engine", async () => "done")).toBe("done");
  });

  it("close at once when idle, and when their work is done otherwise", async () => {
    const { lanes, closed } = setUp(2);
    const busy = gate();
    const work = lanes.use("engine", () => busy.passed);
    await lanes.use("engine", async () => {});
    lanes.close();
    expect(closed.length).toBe(1);
    busy.open();
    await work;
    expect(closed.length).toBe(2);
    await expect(lanes.use("engine", async () => {})).rejects.toThrow("closed");
  });
});
