import type { WorkflowStep, StepContext } from "../../src/authoring/step.js";
import type { Dice } from "./random.js";

/** A workflow as data: small enough to predict, rich enough to go wrong. */
export type Node =
  | DoNode
  | { readonly kind: "sleep"; readonly name: string; readonly ms: number }
  | { readonly kind: "wait"; readonly name: string; readonly type: string; readonly ms: number }
  | { readonly kind: "seq" | "all" | "race" | "any" | "settled"; readonly items: readonly Node[] }
  /** Goes on according to which of its items came first. */
  | { readonly kind: "branch"; readonly name: string; readonly items: readonly Node[] }
  /** Creates a child outside of any step. */
  | { readonly kind: "spawn"; readonly name: string }
  | { readonly kind: "try"; readonly item: Node }
  /** Awaits something that is not a step, and some microtasks, before its item. */
  | { readonly kind: "aside"; readonly ms: number; readonly depth: number; readonly item: Node }
  /** Goes on beside the rest, and nobody awaits it. */
  | { readonly kind: "stray"; readonly ms: number; readonly item: Node }
  /** Races its item against something that is not a step. */
  | { readonly kind: "hurry"; readonly ms: number; readonly item: Node };

export type DoNode = {
  readonly kind: "do";
  readonly name: string;
  /** Null means no limit. */
  readonly limit: number | null;
  readonly delayMs: number;
  /** How many attempts fail before one succeeds. */
  readonly failures: number;
  readonly takesMs: number;
  /** The attempts that end their process. */
  readonly kills: readonly number[];
  readonly child?: boolean;
  readonly nested?: DoNode;
};

export const eventTypes = ["red", "blue"];

/** The simulation as the code of a program needs it. */
export interface Outside {
  sleep(ms: number): Promise<void>;
  /** Tells that the code calls a step, and returns how many settlements it has seen. */
  called(name: string, isDo: boolean): number;
  /** Tells that the code, or the body of another step, was given the result of a step. */
  saw(name: string, isNested: boolean): void;
  /**
   * Runs a body. `known` is what `called` returned, and `first` is what the body does before it takes its
   * time.
   */
  body(
    node: DoNode,
    context: StepContext,
    known: number,
    first: () => Promise<void>,
  ): Promise<unknown>;
  child(name: string): Promise<unknown>;
  /** Creates a child outside of steps, where nothing is tried again. */
  spawn(name: string): Promise<unknown>;
}

export async function execute(node: Node, step: WorkflowStep, outside: Outside): Promise<unknown> {
  const run = (item: Node): Promise<unknown> => execute(item, step, outside);
  switch (node.kind) {
    case "do":
      return callDo(node, step, outside);
    case "sleep":
      outside.called(node.name, false);
      await watched(node.name, step.sleep(node.name, node.ms), outside);
      return "slept";
    case "wait": {
      const options = { type: node.type, timeout: node.ms };
      outside.called(node.name, false);
      await watched(node.name, step.waitForEvent(node.name, options), outside);
      return "event";
    }
    case "spawn":
      await outside.spawn(node.name);
      return "spawned";
    case "branch": {
      const winner = await Promise.race(node.items.map((item, n) => run(item).then(() => n)));
      await callDo(branchStep(`${node.name}:${winner}`), step, outside);
      return "branched";
    }
    case "seq": {
      const results: unknown[] = [];
      for (const item of node.items) results.push(await run(item));
      return results;
    }
    case "all":
      return Promise.all(node.items.map(run));
    case "race":
      return Promise.race(node.items.map(run));
    case "any":
      return Promise.any(node.items.map(run));
    case "settled": {
      const all = await Promise.allSettled(node.items.map(run));
      return all.map((each) =>
        each.status === "fulfilled" ? each.value : `caught ${messageOf(each.reason)}`,
      );
    }
    case "try":
      try {
        return await run(node.item);
      } catch (error) {
        return `caught ${messageOf(error)}`;
      }
    case "aside":
      await outside.sleep(node.ms);
      for (let n = 0; n < node.depth; n++) await Promise.resolve();
      return run(node.item);
    case "stray":
      void outside.sleep(node.ms).then(() => run(node.item).catch(() => {}));
      return "strayed";
    case "hurry":
      return Promise.race([run(node.item), outside.sleep(node.ms).then(() => "hurried")]);
  }
}

function callDo(
  node: DoNode,
  step: WorkflowStep,
  outside: Outside,
  isNested = false,
): Promise<unknown> {
  const known = outside.called(node.name, true);
  const promise = step.do(node.name, configOf(node), (context) =>
    outside.body(node, context, known, async () => {
      if (node.child === true) await outside.child(node.name);
      if (node.nested !== undefined) await callDo(node.nested, step, outside, true);
    }),
  );
  return watched(node.name, promise, outside, isNested);
}

/** Tells of a result beside the code's own awaits, and before them. */
function watched<T>(
  name: string,
  promise: Promise<T>,
  outside: Outside,
  isNested = false,
): Promise<T> {
  const saw = (): void => outside.saw(name, isNested);
  promise.then(saw, saw);
  return promise;
}

function branchStep(name: string): DoNode {
  return { kind: "do", name, limit: null, delayMs: 10, failures: 0, takesMs: 60, kills: [] };
}

function configOf({ limit, delayMs }: DoNode): object {
  return {
    retries: { limit: limit ?? Infinity, delay: delayMs, backoff: "constant" as const },
    timeout: "1 hour",
  };
}

/** Waits and exhausted attempts say what happened by their names, and bodies by their message. */
export function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return "AggregateError";
  if (!(error instanceof Error)) return String(error);
  return error.name === "Error" ? error.message : error.name;
}

/** Returns the branches that something other than a step may decide, and not twice in the same way. */
export function looseBranches(node: Node): string[] {
  const items = "items" in node ? node.items : "item" in node ? [node.item] : [];
  const within = items.flatMap(looseBranches);
  return node.kind === "branch" && node.items.some(hasForeignAwait)
    ? [node.name, ...within]
    : within;
}

/**
 * Returns the steps that the code calls after it has awaited something that is no step. Only their calls may come later
 * in a replay, among the settlements, than they came before.
 */
export function stepsBehindForeignAwaits(node: Node): Set<string> {
  const found = new Set<string>();
  const walk = (each: Node, isBehind: boolean): void => {
    switch (each.kind) {
      case "do":
        if (isBehind) found.add(each.name);
        return;
      case "seq": {
        let isAfter = isBehind;
        for (const item of each.items) {
          walk(item, isAfter);
          isAfter ||= delays(item);
        }
        return;
      }
      case "branch":
        for (const n of each.items.keys()) {
          if (isBehind || each.items.some(delays)) found.add(`${each.name}:${n}`);
        }
        return each.items.forEach((item) => walk(item, isBehind));
      case "all":
      case "race":
      case "any":
      case "settled":
        return each.items.forEach((item) => walk(item, isBehind));
      case "try":
      case "hurry":
        return walk(each.item, isBehind);
      case "aside":
      case "stray":
        return walk(each.item, true);
      default:
    }
  };
  walk(node, false);
  return found;
}

/** Returns whether what follows may wait for something that is no step. Nobody waits for a stray. */
function delays(node: Node): boolean {
  if (["aside", "hurry", "spawn"].includes(node.kind)) return true;
  if (node.kind === "stray") return false;
  const items = "items" in node ? node.items : "item" in node ? [node.item] : [];
  return items.some(delays);
}

function hasForeignAwait(node: Node): boolean {
  if (["aside", "hurry", "stray", "spawn"].includes(node.kind)) return true;
  const items = "items" in node ? node.items : "item" in node ? [node.item] : [];
  return items.some(hasForeignAwait);
}

/** Returns an output as `outcomesOf` writes it, without the tokens of bodies. */
export function normal(output: string | null): string {
  return JSON.stringify(JSON.parse(output ?? "null"), (_key, value: unknown) =>
    typeof value === "object" && value !== null && "token" in value
      ? (value as unknown as { step: string }).step
      : value,
  );
}

/** How a program may end: outputs as JSON, errors by their message. Null if there are too many ways. */
export type Outcomes = { readonly values: Set<string>; readonly errors: Set<string> } | null;

const MAX_OUTCOMES = 300;

/** Returns how a program may end. With `mayCrash`, attempts may be used up by crashes. */
export function outcomesOf(node: Node, mayCrash: boolean): Outcomes {
  const of = (item: Node): Outcomes => outcomesOf(item, mayCrash);
  switch (node.kind) {
    case "do": {
      const values = new Set<string>();
      const errors = new Set<string>();
      const limit = node.limit ?? Infinity;
      if (node.failures <= limit) values.add(JSON.stringify(node.name));
      else errors.add(`failed ${node.name}`);
      if (mayCrash && limit !== Infinity) errors.add("StepMaxAttemptsExceeded");
      if (mayCrash && node.nested !== undefined && node.nested.limit !== null) {
        errors.add("StepMaxAttemptsExceeded");
      }
      return { values, errors };
    }
    case "spawn":
      return { values: new Set(['"spawned"']), errors: new Set() };
    case "branch": {
      const items = union(node.items.map(of));
      return items && { values: new Set(['"branched"']), errors: items.errors };
    }
    case "sleep":
      return { values: new Set(['"slept"']), errors: new Set() };
    case "wait":
      return { values: new Set(['"event"']), errors: new Set(["WaitTimeoutError"]) };
    case "seq":
    case "all":
      return product(node.items.map(of));
    case "race":
      return union(node.items.map(of));
    case "any": {
      const all = union(node.items.map(of));
      if (all === null) return null;
      const canFail = node.items.every((item) => (of(item)?.errors.size ?? 0) > 0);
      return { values: all.values, errors: new Set(canFail ? ["AggregateError"] : []) };
    }
    case "settled":
      return product(node.items.map((item) => caught(of(item))));
    case "try":
      return caught(of(node.item));
    case "aside":
      return of(node.item);
    case "stray":
      return { values: new Set(['"strayed"']), errors: new Set() };
    case "hurry":
      return union([of(node.item), { values: new Set(['"hurried"']), errors: new Set() }]);
  }
}

function caught(outcomes: Outcomes): Outcomes {
  if (outcomes === null) return null;
  const texts = [...outcomes.errors].map((error) => JSON.stringify(`caught ${error}`));
  return { values: new Set([...outcomes.values, ...texts]), errors: new Set() };
}

function union(all: readonly Outcomes[]): Outcomes {
  const values = new Set<string>();
  const errors = new Set<string>();
  for (const each of all) {
    if (each === null) return null;
    for (const value of each.values) values.add(value);
    for (const error of each.errors) errors.add(error);
  }
  return values.size > MAX_OUTCOMES ? null : { values, errors };
}

function product(all: readonly Outcomes[]): Outcomes {
  let lists: string[] = [""];
  const errors = new Set<string>();
  for (const [n, each] of all.entries()) {
    if (each === null) return null;
    for (const error of each.errors) errors.add(error);
    lists = lists.flatMap((list) =>
      [...each.values].map((value) => (n === 0 ? value : `${list},${value}`)),
    );
    if (lists.length > MAX_OUTCOMES) return null;
  }
  return { values: new Set(lists.map((list) => `[${list}]`)), errors };
}

/** Makes a program from dice. Step names are unique. */
export function randomProgram(dice: Dice): Node {
  let count = 0;
  const name = (): string => `s${++count}`;
  const body = (depth: number): DoNode => {
    const isParent = dice.chance(0.08);
    // A store that is away fails a create, so a parent tries until it is back.
    const limit = isParent ? null : dice.pick([null, null, 6, 2, 1, 0]);
    return {
      kind: "do",
      name: name(),
      limit,
      delayMs: dice.pick([0, 10, 100, 1_500]),
      failures: dice.pick([0, 0, 0, 1, 2]),
      takesMs: dice.pick([0, 0, 1, 20, 400, 3_000]),
      kills: dice.chance(0.05) ? [1] : [],
      ...(isParent ? { child: true } : {}),
      ...(depth > 0 && dice.chance(0.08) ? { nested: { ...body(0), limit: null, kills: [] } } : {}),
    };
  };
  const items = (depth: number): Node[] =>
    Array.from({ length: dice.between(2, 3) }, () => node(depth - 1));
  const node = (depth: number): Node => {
    if (depth === 0) return leaf();
    switch (dice.upTo(11)) {
      case 0:
      case 1:
        return { kind: "seq", items: items(depth) };
      case 2:
        return { kind: "all", items: items(depth) };
      case 3:
        return { kind: "race", items: items(depth) };
      case 4:
        return { kind: dice.pick(["any", "settled"]), items: items(depth) };
      case 5:
        return { kind: "try", item: node(depth - 1) };
      case 6:
        return {
          kind: "aside",
          ms: dice.pick([0, 1, 30]),
          depth: dice.upTo(4),
          item: node(depth - 1),
        };
      case 7:
        return { kind: "stray", ms: dice.pick([0, 5, 2_000]), item: leaf() };
      case 8:
        return { kind: "hurry", ms: dice.pick([1, 30, 500]), item: node(depth - 1) };
      case 9:
        return { kind: "branch", name: name(), items: items(depth) };
      case 10:
        return { kind: "spawn", name: name() };
      default:
        return leaf();
    }
  };
  const leaf = (): Node => {
    switch (dice.upTo(5)) {
      case 0:
        return { kind: "sleep", name: name(), ms: dice.pick([0, 1, 50, 700, 5_000]) };
      case 1:
        return {
          kind: "wait",
          name: name(),
          type: dice.pick(eventTypes),
          ms: dice.pick([1_000, 2_000, 8_000]),
        };
      default:
        return body(1);
    }
  };
  return { kind: "seq", items: Array.from({ length: dice.between(1, 4) }, () => node(2)) };
}
