import { describe, expect, it } from "vitest";
import { webRuntime } from "../runtime.js";
import type { CreateAnswer, NewInstance } from "../store/store.js";
import { anInstance, someInstances } from "../testing/conformance/build.js";
import { VirtualTime } from "../testing/virtual-time.js";
import { Creates, type WriteInstances } from "./creates.js";

class Away extends Error {}
class Locked extends Error {}

const created = ({ iid }: NewInstance): CreateAnswer => ({
  kind: "created",
  iid,
  createdAt: 1,
  leased: false,
});

/** Makes a world in which writes are answered when told to, in the order in which they came. */
function setUp() {
  const time = new VirtualTime();
  const sent: { how: "together" | "alone"; iids: string[]; runner: string | null }[] = [];
  const open: { succeed(): void; fail(error: Error): void }[] = [];
  const write =
    (how: "together" | "alone"): WriteInstances =>
    (instances, runner) => {
      sent.push({ how, iids: instances.map(({ iid }) => iid), runner });
      return new Promise((resolve, reject) => {
        open.push({ succeed: () => resolve(instances.map(created)), fail: reject });
      });
    };
  const creates = new Creates(time.runtime(), {
    together: write("together"),
    alone: write("alone"),
    causeOf: (error) =>
      error instanceof Away ? "store" : error instanceof Locked ? "lock" : "request",
  });
  return {
    sent,
    pass: (ms: number) => time.takeNext(time.now() + ms)?.callback(),
    succeed: () => open.shift()?.succeed(),
    fail: (error: Error) => open.shift()?.fail(error),
    create: (instances: readonly NewInstance[], runner: string | null = null) =>
      creates.create(instances, runner, false).then(
        (answers) => answers.map((answer) => (answer.kind === "created" ? answer.iid : "")),
        (error: unknown) => error,
      ),
    sizes: () => sent.map(({ how, iids }) => `${how} ${iids.length}`),
  };
}

const nextRound = (): Promise<void> =>
  new Promise((resolve) => webRuntime.scheduler.round(resolve));
const iids = (instances: readonly NewInstance[]): string[] => instances.map(({ iid }) => iid);

describe("creates", () => {
  it("are sent in the next round", async () => {
    const { create, sizes } = setUp();
    void create([anInstance()]);
    await nextRound();
    expect(sizes()).toEqual(["together 1"]);
  });

  it("that come while one is on its way travel together, and each gets its own answers", async () => {
    const { create, succeed, sizes } = setUp();
    const requests = [1, 2, 3, 1].map((size) => someInstances(size));
    const answers = [create(requests[0]!)];
    await nextRound();
    answers.push(...requests.slice(1).map((request) => create(request)));
    await nextRound();
    expect(sizes()).toEqual(["together 1"]);
    succeed();
    await nextRound();
    await nextRound();
    expect(sizes()).toEqual(["together 1", "together 6"]);
    succeed();
    expect(await Promise.all(answers)).toEqual(requests.map(iids));
  });

  it("for different runners travel apart", async () => {
    const { create, succeed, sent } = setUp();
    for (const runner of ["a", null, "a", null]) void create([anInstance()], runner);
    await nextRound();
    succeed();
    await nextRound();
    await nextRound();
    expect(sent.map(({ runner, iids: { length } }) => [runner, length])).toEqual([
      ["a", 2],
      [null, 2],
    ]);
  });

  it("are limited in number and length per group, except for a request that exceeds both alone", async () => {
    const { create, succeed, sizes } = setUp();
    const long = { params: "x".repeat(700_000) };
    for (const size of [201, 150, 50, 1]) void create(someInstances(size));
    for (let n = 0; n < 2; n++) void create([anInstance(long)]);
    for (let n = 0; n < 4; n++) {
      await nextRound();
      succeed();
      await nextRound();
    }
    expect(sizes()).toEqual(["together 201", "together 200", "together 2", "together 1"]);
  });

  it("are each written alone when one may be to blame, without delaying others", async () => {
    const { create, fail, succeed, sizes } = setUp();
    const requests = [1, 2, 1].map((size) => someInstances(size));
    const answers = requests.map((request) => create(request));
    await nextRound();
    fail(new Error("one of them"));
    await nextRound();
    const later = create([anInstance()]);
    await nextRound();
    await nextRound();
    expect(sizes()).toEqual(["together 4", "alone 1", "alone 2", "alone 1", "together 1"]);
    succeed();
    fail(new Error("this one"));
    succeed();
    succeed();
    expect(await Promise.all(answers)).toEqual([
      iids(requests[0]!),
      new Error("this one"),
      iids(requests[2]!),
    ]);
    await later;
  });

  it("that are alone are written again after a lock, but not after a mistake", async () => {
    const { create, fail, sizes } = setUp();
    const locked = create([anInstance()]);
    await nextRound();
    fail(new Locked());
    await nextRound();
    expect(sizes()).toEqual(["together 1", "alone 1"]);
    fail(new Away());
    expect(await locked).toEqual(new Away());
    const mistaken = create([anInstance()]);
    await nextRound();
    fail(new Error("no"));
    expect(await mistaken).toEqual(new Error("no"));
    expect(sizes().slice(2)).toEqual(["together 1"]);
  });

  it("fail together when the store is away", async () => {
    const { create, fail, sizes } = setUp();
    const answers = Array.from({ length: 200 }, () => create([anInstance()]));
    await nextRound();
    fail(new Away());
    expect(new Set(await Promise.all(answers))).toEqual(new Set([new Away()]));
    await nextRound();
    expect(sizes()).toEqual(["together 200"]);
  });

  it("do not wait for a slow group, unless three are on their way", async () => {
    const { create, pass, succeed, sizes } = setUp();
    const pair = (): void => [1, 2].forEach(() => void create([anInstance()]));
    for (let n = 0; n < 5; n++) {
      pair();
      await nextRound();
      pass(100);
      await nextRound();
    }
    expect(sizes()).toEqual(["together 2", "together 2", "together 2"]);
    succeed();
    await nextRound();
    await nextRound();
    expect(sizes().slice(3)).toEqual(["together 4"]);
  });

  it("wait for the newest group, not for an earlier one that is answered late", async () => {
    const { create, pass, succeed, sizes } = setUp();
    void create([anInstance()]);
    await nextRound();
    void create([anInstance()]);
    pass(100);
    await nextRound();
    void create([anInstance()]);
    succeed();
    await nextRound();
    await nextRound();
    expect(sizes()).toEqual(["together 1", "together 1"]);
    succeed();
    await nextRound();
    await nextRound();
    expect(sizes().length).toBe(3);
  });
});
