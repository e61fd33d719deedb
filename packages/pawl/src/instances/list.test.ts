import { beforeEach, describe, expect, test } from "vitest";
import { instancesWorld, type InstancesWorld } from "../../test/support/instances.js";
import type { Workflow } from "../authoring/bindings.js";
import { defineWorkflow } from "../authoring/define-workflow.js";
import { encodeError } from "../model/error-codec.js";
import { aStep } from "../testing/conformance/build.js";
import { history, type HistoryOptions } from "./history.js";
import { listInstances, type ListOptions } from "./list.js";

let world: InstancesWorld;
let order: Workflow;
let startedAt: Date;

beforeEach(async () => {
  world = await instancesWorld({ ORDER: defineWorkflow({ name: "order", run: () => 1 }) });
  order = world.workflows["ORDER"] as Workflow;
  startedAt = new Date(world.clock.now());
});

const target = (id: string) => ({ workflow: "order", id });

describe("list", () => {
  test("pages through the instances, newest first", async () => {
    for (const id of ["a", "b", "c"]) {
      await order.create({ id });
      world.clock.advance(1_000);
    }
    const first = await listInstances(world.context, "order", { pageSize: 2 });
    expect(first.instances.map(({ id }) => id)).toEqual(["c", "b"]);
    expect(first.hasNextPage).toBe(true);
    const { cursor } = first;
    const second = await listInstances(world.context, "order", { pageSize: 2, cursor });
    expect(second).toEqual({
      hasNextPage: false,
      instances: [
        {
          id: "a",
          runNumber: 1,
          createdAt: startedAt,
          startedAt: null,
          finishedAt: null,
          details: { status: "queued" },
        },
      ],
    });
    const oldest = await listInstances(world.context, "order", { order: "oldest" });
    expect(oldest.instances.map(({ id }) => id)).toEqual(["a", "b", "c"]);
  });

  test("filters by status and leaves out long outputs", async () => {
    await order.createBatch([{ id: "a" }, { id: "b" }, { id: "c" }]);
    const long = JSON.stringify("x".repeat(4_095));
    await world.turn(target("a"), { kind: "complete", output: long });
    await world.turn(target("b"), { kind: "complete", output: JSON.stringify("x".repeat(4_094)) });
    const { instances } = await listInstances(world.context, "order", {
      status: "complete",
      order: "oldest",
    });
    expect(instances.map(({ id, details }) => [id, details.outputTruncated])).toEqual([
      ["a", true],
      ["b", undefined],
    ]);
    expect(instances[0]?.details).not.toHaveProperty("output");
    expect(instances[1]?.details.output).toHaveLength(4_094);
  });

  test.each<[string, unknown, string]>([
    ["a page of none", { pageSize: 0 }, "INVALID_REQUEST"],
    ["too large a page", { pageSize: 101 }, "INVALID_REQUEST"],
    ["an unknown status", { status: "done" }, "INVALID_REQUEST"],
    ["an unknown order", { order: "random" }, "INVALID_REQUEST"],
    ["a foreign cursor", { cursor: "x" }, "INVALID_CURSOR"],
    ["a cursor that is no text", { cursor: 1 }, "INVALID_CURSOR"],
  ])("refuses %s", async (_what, options, code) => {
    const listed = listInstances(world.context, "order", options as ListOptions);
    await expect(listed).rejects.toMatchObject({ code });
  });

  test("refuses an unknown workflow", async () => {
    await expect(listInstances(world.context, "other")).rejects.toMatchObject({
      code: "WORKFLOW_NOT_FOUND",
    });
  });
});

describe("history", () => {
  const waiting = { status: "waiting", seq: null, result: null, error: null } as const;
  const no = encodeError(new RangeError("no"));
  const later = (seconds: number) => new Date(startedAt.getTime() + seconds * 1_000);

  test("shows what happened, decoded and in order", async () => {
    const instance = await order.create({ id: "a" });
    await instance.sendEvent({ type: "paid", payload: { at: new Date(0) } });
    world.clock.advance(1_000);
    await world.turn(
      target("a"),
      { kind: "park", waitMask: 1, wake: { inMs: 5_000 }, historyBytes: 0 },
      {
        seenEvents: 1,
        steps: [
          aStep(1, { result: '{"n":1}' }),
          aStep(2, { status: "errored", result: null, error: no, attempts: 2 }),
          aStep(3, { ...waiting, attempts: 1, wake: { inMs: 5_000 } }),
          aStep(4, { ...waiting, type: "sleep", attempts: 0, wake: { inMs: 6_000 } }),
          aStep(5, { ...waiting, type: "waitForEvent", attempts: 0, waitKey: "go" }),
        ],
        attempts: [
          { ord: 2, n: 1, tookMs: 500, error: no },
          { ord: 2, n: 2, tookMs: 0, error: no },
        ],
        consumed: [{ number: 1, ord: 1 }],
      },
    );
    const { entries, ...page } = await history(world.context, "order", "a");
    expect(page).toEqual({
      runNumber: 1,
      hasNextPage: false,
      runs: [{ runNumber: 1, status: "waiting", startedAt: later(1), finishedAt: null }],
    });
    const error = { name: "RangeError", message: "no" };
    const at = { startedAt: later(1), endedAt: later(1) };
    expect(entries).toEqual([
      {
        kind: "event",
        type: "paid",
        payload: { at: new Date(0) },
        createdAt: expect.any(Date),
        deliveredAt: later(1),
        consumedByStep: 1,
      },
      {
        kind: "step",
        ord: 1,
        name: "step 1",
        count: 1,
        type: "do",
        status: "completed",
        ...at,
        result: { n: 1 },
        attempts: [{ n: 1, ...at }],
      },
      expect.objectContaining({
        status: "errored",
        error,
        attempts: [
          { n: 1, startedAt: later(0.5), endedAt: later(1), error },
          { n: 2, ...at, error },
        ],
      }),
      expect.objectContaining({ wait: { reason: "retry", until: later(6) } }),
      expect.objectContaining({ wait: { reason: "sleep", until: later(7) }, attempts: [] }),
      expect.objectContaining({
        wait: { reason: "event", until: null, eventType: "go" },
        attempts: [],
      }),
    ]);
  });

  test("has pages, and keeps the runs before a restart", async () => {
    const instance = await order.create({ id: "a" });
    const steps = [aStep(1, {}), aStep(2, {}), aStep(3, {})];
    await world.turn(target("a"), { kind: "complete", output: '"done"' }, { steps });
    await instance.restart();
    const { runs, entries } = await history(world.context, "order", "a");
    expect(entries).toEqual([]);
    expect(runs).toMatchObject([
      { runNumber: 2, status: "queued" },
      { runNumber: 1, status: "complete", output: "done" },
    ]);
    const names: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await history(world.context, "order", "a", {
        runNumber: 1,
        pageSize: 2,
        cursor,
      });
      for (const entry of page.entries) names.push(entry.kind === "step" ? entry.name : "event");
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(names).toEqual(["step 1", "step 2", "step 3"]);
  });

  test.each<[string, string, string, unknown, string]>([
    ["an unknown workflow", "other", "a", {}, "WORKFLOW_NOT_FOUND"],
    ["an unknown instance", "order", "b", {}, "INSTANCE_NOT_FOUND"],
    ["a bad id", "order", "b c", {}, "INVALID_INSTANCE_ID"],
    ["run 0", "order", "a", { runNumber: 0 }, "INVALID_REQUEST"],
    ["a run that does not exist yet", "order", "a", { runNumber: 2 }, "INVALID_REQUEST"],
    ["a page of none", "order", "a", { pageSize: 0 }, "INVALID_REQUEST"],
  ])("refuses %s", async (_what, workflow, id, options, code) => {
    await order.create({ id: "a" });
    const read = history(world.context, workflow, id, options as HistoryOptions);
    await expect(read).rejects.toMatchObject({ code });
  });
});
