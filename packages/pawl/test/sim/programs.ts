import type { DoNode, Node } from "./program.js";

const step = (name: string, change: Partial<DoNode> = {}): DoNode => ({
  kind: "do",
  name,
  limit: 2,
  delayMs: 20,
  failures: 0,
  takesMs: 0,
  kills: [],
  ...change,
});
const seq = (...items: Node[]): Node => ({ kind: "seq", items });
const sleep = (name: string, ms: number): Node => ({ kind: "sleep", name, ms });
const wait = (name: string, type: string, ms: number): Node => ({ kind: "wait", name, type, ms });

/** Small workflows, one for each thing that can go on when a fault strikes. */
export const smallPrograms: Readonly<Record<string, Node>> = {
  "one step": seq(step("a")),
  "three steps": seq(step("a"), step("b"), step("c")),
  "a retry": seq(step("a", { failures: 1 }), step("b")),
  "at most once": seq(step("a", { limit: 0, takesMs: 10 }), step("b", { limit: 0 })),
  "a long body": seq(step("a", { takesMs: 2_500 })),
  "a sleep": seq(step("a"), sleep("nap", 300), step("b")),
  "an event": seq(wait("red", "red", 5_000), step("a")),
  "an event that never comes": seq({ kind: "try", item: wait("green", "green", 1_000) }, step("a")),
  "a race of waits": seq(
    { kind: "race", items: [sleep("long", 400), wait("blue", "blue", 5_000)] },
    step("a"),
  ),
  "bodies beside a wait": seq(
    { kind: "all", items: [step("a", { takesMs: 500 }), sleep("nap", 100), step("b")] },
    step("c"),
  ),
  "a child": seq(step("a", { child: true, limit: null }), step("b")),
  "a step in a step": seq(step("a", { nested: step("b", { limit: null }) }), step("c")),
  "a stray step": seq({ kind: "stray", ms: 50, item: step("a") }, sleep("nap", 300), step("b")),
  "a race against the world": seq(
    { kind: "hurry", ms: 30, item: step("a", { takesMs: 200 }) },
    step("b"),
  ),
  "a race of depths": seq(
    {
      kind: "branch",
      name: "r",
      items: [
        { kind: "try", item: { kind: "try", item: seq(step("a", { takesMs: 20 })) } },
        step("b", { takesMs: 20 }),
      ],
    },
    sleep("nap", 100),
    step("c"),
  ),
  "a race of equal sleeps": seq(
    step("s"),
    {
      kind: "branch",
      name: "r",
      items: [
        { kind: "try", item: { kind: "try", item: seq(sleep("deep", 100)) } },
        sleep("flat", 100),
      ],
    },
    sleep("nap", 100),
    step("c"),
  ),
  "a race through the world": seq(
    {
      kind: "branch",
      name: "r",
      items: [
        seq(step("a"), { kind: "aside", ms: 20, depth: 2, item: step("b") }),
        seq(step("c", { takesMs: 10 }), step("d", { takesMs: 40 })),
      ],
    },
    sleep("nap", 100),
    step("e"),
  ),
  "a child outside of steps": seq(step("a"), { kind: "spawn", name: "k" }, step("b")),
  "an event at the last moment": seq({ kind: "try", item: wait("last", "last", 1_000) }, step("a")),
  "a body beside a parked wait": seq({
    kind: "all",
    items: [seq(step("a"), step("b")), wait("last", "last", 1_500), sleep("nap", 200)],
  }),
  "all settled": seq({
    kind: "settled",
    items: [step("a", { failures: 5 }), wait("red", "red", 1_000), step("b")],
  }),
  "an error": seq(step("a", { failures: 5, limit: 1 })),
};

/**
 * Lives longer than any answer takes. Once loaded, its retry starts without a commit that would be fenced.
 */
export const longProgram: Node = seq(
  step("a", { failures: 1, delayMs: 300 }),
  sleep("night", 8_000),
  step("b"),
);

/** These meet their faults in one process, so that what they park stays in its memory. */
export const alone: ReadonlySet<string> = new Set(["an event at the last moment", "a stray step"]);

/** Bodies that end their processes: with progress in between, and without. */
export const deadlyPrograms: Readonly<Record<string, { program: Node; ending: RegExp }>> = {
  "six deaths, and progress after each": {
    program: seq(
      ...["a", "b", "c", "d", "e", "f"].map((name) => step(name, { limit: null, kills: [1] })),
    ),
    ending: /complete/,
  },
  "a body that always kills": {
    program: seq(step("a"), step("b", { limit: null, kills: [1, 2, 3, 4, 5, 6, 7, 8, 9] })),
    ending: /RunCrashedError/,
  },
  "deaths up to its limit": {
    program: seq({ kind: "try", item: step("a", { kills: [1, 2, 3, 4] }) }, step("b")),
    ending: /caught StepMaxAttemptsExceeded/,
  },
};
