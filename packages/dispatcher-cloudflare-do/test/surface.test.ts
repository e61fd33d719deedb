import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Miniflare } from "miniflare";
import { bundled, worker, workerd } from "./support/workerd.js";

let server: Miniflare;

beforeAll(async () => {
  server = workerd(await bundled(worker("surface")), "Host");
  await server.ready;
});
afterAll(() => server.dispose());

async function raw(method: string, ...args: unknown[]) {
  const body = JSON.stringify({ method, args });
  const answer = await server.dispatchFetch("http://host/raw", { method: "POST", body });
  return (await answer.json()) as { value?: unknown; error?: string };
}

test("an object has two methods over RPC, and no values", async () => {
  const answered = await (await server.dispatchFetch("http://host/")).json();
  expect(answered).toEqual(["call", "sibling"]);
});

test("malformed calls are refused, and the object goes on", async () => {
  for (const call of [
    {},
    { binding: "PING" },
    { binding: "constructor", method: "create" },
    { binding: "PING", id: "a", method: "constructor" },
    { binding: "PING", id: "a", method: "__proto__" },
  ]) {
    expect(await raw("call", call)).toEqual({ error: expect.any(String) });
  }
  for (const call of [
    {},
    { verb: "migrate", args: [] },
    { verb: "commit", args: [[]] },
    { verb: "claim", args: [{}] },
    { verb: "constructor", args: [] },
    { verb: "fits", args: [{}] },
    { verb: "get" },
    { verb: "get", args: [] },
  ]) {
    expect(await raw("sibling", call)).toEqual({ error: expect.any(String) });
  }
  const made = await raw("call", { binding: "PING", method: "create", options: { id: "a" } });
  expect(made).toEqual({ value: '"a"' });
});

test("invalid options are refused when the worker loads", async () => {
  const misconfigured = workerd(await bundled(worker("misconfigured")), "Host");
  onTestFinished(() => misconfigured.dispose());
  const messageOf = async (options: object): Promise<unknown> => {
    const body = JSON.stringify(options);
    return (await misconfigured.dispatchFetch("http://host/", { method: "POST", body })).json();
  };
  expect(await messageOf({})).toBe("taken");
  expect(await messageOf({ shards: 4 })).toBe("taken");
  expect(await messageOf({ shards: 0 })).toContain("ValidationError: shards must be");
  expect(await messageOf({ shard: 4 })).toMatch(/unknown option "shard"; the options are .*shards/);
  expect(await messageOf({ shardBy: "workflow", shards: 2 })).toContain("leave out shards");
});
