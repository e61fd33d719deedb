import { defined, equal, matches, ok, only, rejection } from "./assert.js";
import {
  aPart,
  aRunner,
  aStep,
  anAttempt,
  anInstance,
  claim,
  claimOne,
  commit,
  commitOk,
  complete,
  historyRows,
  type Leased,
  leasedRun,
  loadOne,
  parkFor,
  release,
  someInstances,
  recordedSteps,
  targetOf,
  terminate,
} from "./build.js";
import type { ConformanceCase } from "./fixture.js";
import { hostileTexts, mebibyteText } from "./text.js";
import { realTime, stillTime } from "./world.js";

/** Batches of parts, and parts that are large or strange. */
export const batchCases: readonly ConformanceCase[] = [
  stillTime("each part of a batch answers for itself, in order", async ({ store }) => {
    const runs: Leased[] = [];
    for (let i = 0; i < 5; i++) runs.push(await leasedRun(store));
    await store.control(targetOf(runs[2]!), terminate("terminate"));
    const nexts = [
      { kind: "continue" } as const,
      parkFor(["x"]),
      complete(),
      complete(),
      release(),
    ];
    const answers = await store.commit(
      runs.map((run, i) => aPart(run, { steps: [aStep(1)], next: nexts[i]! })),
    );
    equal(
      answers.map((answer) => (answer.kind === "ok" ? answer.state : answer.kind)),
      ["leased", "parked", "lost", "finished", "parked"],
      "the answers",
    );
    const steps = await Promise.all(
      runs.map(async (run) => (await recordedSteps(store, run)).length),
    );
    equal(steps, [1, 1, 0, 1, 1], "steps of each run");
  }),

  stillTime("an empty batch commits nothing", async ({ store }) => {
    equal(await store.commit([]), [], "the answers");
  }),

  stillTime("a batch of 200 parts is committed", async ({ store }) => {
    await store.create(someInstances(200));
    const runs = await claim(store, await aRunner(store), { limit: 200 });
    const answers = await store.commit(
      runs.map((run, i) =>
        aPart(run, {
          steps: [aStep(1, { result: `${i}` }), aStep(2)],
          spawns: i % 50 === 0 ? [anInstance({ workflow: "child" })] : [],
          next: i % 2 === 0 ? complete(`${i}`) : { kind: "continue" },
        }),
      ),
    );
    equal(answers.filter(({ kind }) => kind === "ok").length, 200, "parts applied");
    const loaded = await store.load(runs.filter((_, i) => i % 2 === 1));
    equal(
      loaded.map(({ steps }) => steps.length),
      Array(100).fill(2),
      "steps of each run that goes on",
    );
    equal((await store.get(targetOf(runs[198]!)))?.output, "198", "an output");
  }),

  stillTime("a batch with two parts of one run is refused and writes nothing", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    const parts = [1, 2].map((n) => aPart(run, { partNumber: n, steps: [aStep(n)] }));
    await rejection(store.commit(parts), "commit");
    equal(await recordedSteps(store, run), [], "steps");
  }),

  stillTime("texts of a run come back exactly as they went in", async ({ store }) => {
    const run = await leasedRun(store);
    const steps = hostileTexts.map((text, i) =>
      aStep(i + 1, {
        name: `${i} ${text.trim()}`,
        attempts: 2,
        result: text,
        error: text,
        waitKey: text.trim(),
      }),
    );
    const attempts = hostileTexts.map((error, i) => anAttempt(i + 1, 1, { error }));
    const part = aPart(run, { steps, attempts, next: complete(hostileTexts[1]) });
    await commitOk(store, part);
    const entries = await historyRows(store, run);
    for (const [i, entry] of entries.entries()) {
      if (entry.kind !== "step") continue;
      const { name, result, error, waitKey } = steps[i]!;
      matches(entry.step, { name, result, error, waitKey }, "the step");
      equal(entry.attempts[0]?.error, hostileTexts[i], "the attempt");
    }
    equal(entries.length, steps.length, "entries");
    equal((await store.get(targetOf(run)))?.output, hostileTexts[1], "the output");
  }),

  stillTime("a result and an output of 1 MiB come back exactly as they went in", async (world) => {
    const { store } = world;
    const run = await leasedRun(store);
    await commitOk(store, aPart(run, { steps: [aStep(1, { result: mebibyteText })] }));
    const loaded = await loadOne(store, run);
    ok(loaded.steps[0]?.result === mebibyteText, "the result");
    await commitOk(store, aPart(run, { partNumber: 2, next: complete(mebibyteText) }));
    ok((await store.get(targetOf(run)))?.output === mebibyteText, "the output");
  }),

  stillTime("a batch of many large parts is committed", async ({ store }) => {
    await store.create(someInstances(12));
    const runs = await claim(store, await aRunner(store));
    const steps = [aStep(1, { result: mebibyteText })];
    const answers = await store.commit(runs.map((run) => aPart(run, { steps })));
    equal(
      answers.map(({ kind }) => kind),
      Array(12).fill("ok"),
      "the answers",
    );
    for (const run of runs) {
      ok((await loadOne(store, run)).steps[0]?.result === mebibyteText, "a result");
    }
  }),

  ...(
    [
      ["a raw NUL", { result: '"\0"' }],
      ["a raw lone surrogate", { result: '"\ud800"' }],
      ["a name of 10,000 characters", { name: "n".repeat(10_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`${what} harms at most its own part`, async ({ store }) => {
      const runs: Leased[] = [];
      for (let i = 0; i < 5; i++) runs.push(await leasedRun(store));
      const answers = await store.commit(
        runs.map((run, i) => aPart(run, { steps: [aStep(1, i === 2 ? given : {})] })),
      );
      const others = answers.filter((_, i) => i !== 2);
      equal(
        others.map(({ kind }) => kind),
        Array(4).fill("ok"),
        "the neighbours",
      );
      const steps = await Promise.all(
        runs.map(async (run) => (await recordedSteps(store, run)).length),
      );
      const kind = answers[2]?.kind;
      ok(kind === "bad" || kind === "ok", `the part is "bad" or "ok", not "${kind}"`);
      equal(steps, [1, 1, kind === "ok" ? 1 : 0, 1, 1], "steps of each run");
      await commitOk(store, aPart(runs[2]!, { partNumber: 2, steps: [aStep(1)] }));
    }),
  ),

  ...(
    [
      ["origin", { origin: "o".repeat(3_000) }],
      ["workflow", { workflow: "w".repeat(3_000) }],
      ["id", { id: "i".repeat(3_000) }],
      ["queue", { queue: "q".repeat(3_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`a spawn's ${what} of 3,000 characters is kept or refused, not cut`, async (world) => {
      const { store } = world;
      const run = await leasedRun(store);
      const child = anInstance({ workflow: "child", ...given });
      const answer = await commit(store, aPart(run, { spawns: [child] }));
      const stored = await store.get(targetOf(child));
      if (answer.kind === "bad") return equal(stored, null, "the child");
      equal(answer.kind, "ok", "the answer");
      const { workflow, id, origin = null } = child;
      matches(defined(stored, "the child"), { workflow, id, origin }, "the child");
      equal((await claimOne(store, child)).iid, child.iid, "claimed from its queue");
    }),
  ),

  ...(
    [
      ["wait key", { waitKey: "k".repeat(3_000) }],
      ["type", { type: "t".repeat(3_000) }],
    ] as const
  ).map(([what, given]) =>
    realTime(`a step's ${what} of 3,000 characters is kept or refused, not cut`, async (world) => {
      const { store } = world;
      const run = await leasedRun(store);
      const answer = await commit(store, aPart(run, { steps: [aStep(1, given)] }));
      const steps = await recordedSteps(store, run);
      if (answer.kind === "bad") return equal(steps, [], "steps");
      equal(answer.kind, "ok", "the answer");
      matches(only(steps, "steps"), given, "the step");
    }),
  ),
];
