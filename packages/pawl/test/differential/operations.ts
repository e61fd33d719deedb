import fc, { type Arbitrary } from "fast-check";
import { hookNames, type HookName } from "../../src/model/hooks.js";
import { instanceStatusNames, type InstanceStatusName } from "../../src/model/status.js";
import type { StepStatus } from "../../src/model/step-types.js";
import { hostileTexts } from "../../src/testing/conformance/text.js";

/**
 * An element of a sequence. A number that picks something (`target`, `turn`, `runner`, …) is taken modulo
 * what there is at that moment, so that any part of a sequence is a sequence, and fast-check can shrink it.
 */
export type Operation =
  | { readonly op: "create"; readonly items: readonly Item[]; readonly eager: number | null }
  | { readonly op: "create again"; readonly which: number; readonly eager: number | null }
  | { readonly op: "register"; readonly leaseMs: number }
  | { readonly op: "register again"; readonly runner: number; readonly leaseMs: number }
  | { readonly op: "heartbeat"; readonly runner: number; readonly leaseMs: number }
  | { readonly op: "declareDead" }
  | { readonly op: "retire"; readonly runner: number }
  | {
      readonly op: "claim";
      readonly runner: number;
      readonly lanes: readonly number[];
      readonly limit: number;
      readonly reservedForNew: number;
    }
  | { readonly op: "adopt"; readonly runner: number; readonly targets: readonly number[] }
  | { readonly op: "reopen"; readonly runner: number; readonly turns: readonly number[] }
  | { readonly op: "load"; readonly turns: readonly number[]; readonly takenOver: boolean }
  | { readonly op: "poll"; readonly turns: readonly number[]; readonly less: number }
  | { readonly op: "commit"; readonly parts: readonly PartOf[] }
  | {
      readonly op: "sendEvent";
      readonly target: number;
      readonly event: EventOf;
      readonly eager: number | null;
    }
  | { readonly op: "moveInbox"; readonly limit: number }
  | {
      readonly op: "transaction";
      readonly work: readonly InTransaction[];
      readonly end: "commit" | "rollback";
    }
  | { readonly op: "pause" | "resume" | "terminate" | "restart"; readonly target: number }
  | { readonly op: "control again"; readonly which: number }
  | { readonly op: "advance"; readonly ms: number }
  | { readonly op: "get"; readonly target: number }
  | {
      readonly op: "list";
      readonly workflow: number;
      readonly status: InstanceStatusName | null;
      readonly order: Order;
      readonly pageSize: number;
      readonly pages: number;
    }
  | {
      readonly op: "history";
      readonly target: number;
      readonly runNumber: number | null;
      readonly order: Order;
      readonly pageSize: number;
      readonly pages: number;
    }
  | { readonly op: "nextDueInMs" | "unknownLanes"; readonly lanes: readonly number[] }
  | { readonly op: "registerHooks" | "claimHooks"; readonly hooks: readonly HookName[] }
  | { readonly op: "unregisterHook"; readonly hook: HookName }
  /** Settles the rows of the claim that was followed by `back` others. */
  | { readonly op: "settleHooks"; readonly back: number; readonly end: DeliveryEnd }
  | { readonly op: "failedHooks" | "retryHooks" };

/** How a delivery ended. Null means that it was delivered. */
export type DeliveryEnd = { readonly retryInMs: number | null } | null;

type Order = "oldest" | "newest";

export type Item = {
  readonly lane: number;
  readonly id: string;
  readonly params: string | null;
  readonly origin: string | null;
  /** The start of the instance's iid, so that iids come in no order. */
  readonly iid: string;
};

/** An event. Its id is from a small pool, so that some come twice. */
export type EventOf = {
  readonly id: number;
  readonly type: string;
  readonly payload: string | null;
};

export type InTransaction =
  | { readonly op: "create"; readonly items: readonly Item[] }
  | { readonly op: "sendEvent"; readonly target: number; readonly event: EventOf };

export type PartOf =
  /** A part that was sent before, in this claim or an earlier one. */
  | { readonly kind: "again"; readonly turn: number; readonly back: number }
  | {
      readonly kind: "new";
      readonly turn: number;
      /** How many of the events that the turn was given came too late for this part. */
      readonly unseen: number;
      readonly steps: readonly StepOf[];
      readonly attempts: readonly { readonly ord: number; readonly n: number }[];
      readonly consumed: readonly { readonly number: number; readonly ord: number }[];
      readonly spawns: readonly Item[];
      readonly deliveries: readonly {
        readonly target: number;
        readonly runNumber: number;
        readonly event: EventOf;
      }[];
      readonly next: NextOf;
    };

export type StepOf = {
  readonly ord: number;
  readonly status: StepStatus;
  readonly seq: number | null;
  readonly tookMs: number;
  readonly wake: WakeOf | null;
  readonly result: string | null;
  readonly error: string | null;
  /** It may also be true of a step that is not new. */
  readonly isNew: boolean;
};

/** `at` counts from now. */
export type WakeOf = { readonly at: number } | { readonly inMs: number };

export type NextOf =
  | { readonly kind: "continue" }
  | {
      readonly kind: "park";
      readonly types: readonly string[];
      readonly wake: WakeOf | null;
      readonly historyBytes: number;
    }
  | { readonly kind: "release"; readonly inMs: number; readonly historyBytes: number }
  | { readonly kind: "complete"; readonly output: string | null }
  | { readonly kind: "fail"; readonly error: string };

// The pools are small, so that operations meet each other.
const ids = ["a", "A", "a ", "á", "b", "c", "d", "e"];
/** One of these types has a bit beyond 32 bits of the wait mask. */
const eventTypes = ["paid", "Paid", "paid ", "shipped", "a type with a high bit"];
const someMs = fc.constantFrom(0, 1, 250, 1_000, 5_000, 20_000, 60_000);
const leaseMs = fc.constantFrom(1, 1_000, 10_000, 30_000, 600_000);

const pick = fc.nat(1_000);
const text = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom("1", "2") },
  { weight: 1, arbitrary: fc.constantFrom(...hostileTexts) },
);
const textOrNull = fc.option(text, { freq: 4 });
const order = fc.constantFrom<Order>("oldest", "newest");
const few = <T>(of: Arbitrary<T>, maxLength: number, minLength = 0): Arbitrary<T[]> =>
  fc.array(of, { minLength, maxLength });
/** Most often empty. */
const seldom = <T>(of: Arbitrary<T>, maxLength = 2): Arbitrary<T[]> =>
  fc.oneof(
    { weight: 4, arbitrary: fc.constant<T[]>([]) },
    { weight: 1, arbitrary: few(of, maxLength, 1) },
  );

const item: Arbitrary<Item> = fc.record({
  lane: pick,
  id: fc.constantFrom(...ids),
  params: textOrNull,
  origin: fc.option(fc.constantFrom("run/1/1", "Run/1/1"), { freq: 2 }),
  iid: fc.constantFrom("-", "0", "Z", "_", "z"),
});

const event: Arbitrary<EventOf> = fc.record({
  id: fc.nat(4),
  type: fc.constantFrom(...eventTypes),
  payload: textOrNull,
});

const wake: Arbitrary<WakeOf | null> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(null) },
  { weight: 4, arbitrary: fc.record({ inMs: someMs }) },
  { weight: 4, arbitrary: fc.record({ at: someMs }) },
  { weight: 1, arbitrary: fc.record({ at: fc.constantFrom(-1, -1_000, -100_000) }) },
);

const historyBytes = fc.nat(5_000_000);
const awaited = fc.subarray(eventTypes);
const next: Arbitrary<NextOf> = fc.oneof(
  { weight: 9, arbitrary: fc.record({ kind: fc.constant("continue") }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("park"), types: awaited, wake, historyBytes }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("release"), inMs: someMs, historyBytes }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("complete"), output: textOrNull }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("fail"), error: text }) },
);

/** Steps from `retriedFrom` on had more than one attempt, with a record of each. */
const ord = fc.integer({ min: 1, max: 6 });
export const retriedFrom = 4;
const step: Arbitrary<StepOf> = fc.record({
  ord,
  status: fc.constantFrom("running", "waiting", "completed", "errored"),
  seq: fc.option(fc.nat(20)),
  tookMs: someMs,
  wake,
  result: textOrNull,
  error: textOrNull,
  isNew: fc.boolean(),
});

const part: Arbitrary<PartOf> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("again"), turn: pick, back: fc.nat(2) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("new"),
      turn: pick,
      unseen: fc.oneof(
        { weight: 5, arbitrary: fc.constant(0) },
        { weight: 1, arbitrary: fc.nat(3) },
      ),
      steps: few(step, 3),
      attempts: seldom(
        fc.record({
          ord: fc.integer({ min: retriedFrom, max: 6 }),
          n: fc.integer({ min: 1, max: 3 }),
        }),
      ),
      consumed: few(fc.record({ number: fc.nat(5), ord }), 2),
      spawns: seldom(item),
      deliveries: seldom(fc.record({ target: pick, runNumber: fc.constantFrom(1, 1, 2), event })),
      next,
    }),
  },
);

const lanes = few(pick, 4);
const hooks = fc.constantFrom<HookName[][]>(
  [...hookNames],
  ["onWorkflowEnqueued"],
  ["onInstanceFinished"],
);
const deliveryEnd: Arbitrary<DeliveryEnd> = fc.oneof(
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 3, arbitrary: fc.record({ retryInMs: someMs }) },
  { weight: 2, arbitrary: fc.constant({ retryInMs: null }) },
);
const eager = fc.option(pick, { freq: 3 });
const create = few(item, 3, 1);
const is = <K extends string>(op: K): Arbitrary<K> => fc.constant(op);

const creates = fc.record({ op: is("create"), items: create, eager });
const claims = fc.record({
  op: is("claim"),
  runner: pick,
  lanes: fc.oneof(few(pick, 4), fc.constant([0, 1, 2, 3])),
  limit: fc.constantFrom(0, 1, 1, 2, 3, 5),
  reservedForNew: fc.nat(2),
});

const operation: Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: creates },
  { weight: 2, arbitrary: fc.record({ op: is("create again"), which: pick, eager }) },
  { weight: 2, arbitrary: fc.record({ op: is("register"), leaseMs }) },
  { weight: 1, arbitrary: fc.record({ op: is("register again"), runner: pick, leaseMs }) },
  { weight: 4, arbitrary: fc.record({ op: is("heartbeat"), runner: pick, leaseMs }) },
  { weight: 4, arbitrary: fc.record({ op: is("declareDead") }) },
  { weight: 1, arbitrary: fc.record({ op: is("retire"), runner: pick }) },
  { weight: 12, arbitrary: claims },
  { weight: 2, arbitrary: fc.record({ op: is("adopt"), runner: pick, targets: few(pick, 4) }) },
  { weight: 4, arbitrary: fc.record({ op: is("reopen"), runner: pick, turns: few(pick, 3, 1) }) },
  {
    weight: 2,
    arbitrary: fc.record({ op: is("load"), turns: few(pick, 4), takenOver: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ op: is("poll"), turns: few(pick, 3, 1), less: fc.nat(2) }) },
  { weight: 24, arbitrary: fc.record({ op: is("commit"), parts: few(part, 3, 1) }) },
  { weight: 12, arbitrary: fc.record({ op: is("sendEvent"), target: pick, event, eager }) },
  {
    weight: 5,
    arbitrary: fc.record({ op: is("moveInbox"), limit: fc.integer({ min: 1, max: 5 }) }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: is("transaction"),
      work: few(
        fc.oneof(
          { weight: 1, arbitrary: fc.record({ op: is("create"), items: create }) },
          { weight: 2, arbitrary: fc.record({ op: is("sendEvent"), target: pick, event }) },
        ),
        4,
        1,
      ),
      end: fc.constantFrom("commit", "commit", "rollback"),
    }),
  },
  { weight: 5, arbitrary: fc.record({ op: is("pause"), target: pick }) },
  { weight: 4, arbitrary: fc.record({ op: is("resume"), target: pick }) },
  { weight: 2, arbitrary: fc.record({ op: is("terminate"), target: pick }) },
  { weight: 3, arbitrary: fc.record({ op: is("restart"), target: pick }) },
  { weight: 2, arbitrary: fc.record({ op: is("control again"), which: pick }) },
  {
    weight: 9,
    arbitrary: fc.record({
      op: is("advance"),
      ms: fc.constantFrom(1, 1, 249, 250, 1_000, 4_999, 20_000, 60_000, 3_600_000, -1, -30_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: is("get"), target: pick }) },
  {
    weight: 5,
    arbitrary: fc.record({
      op: is("list"),
      workflow: pick,
      status: fc.option(fc.constantFrom(...instanceStatusNames), { freq: 3 }),
      order,
      pageSize: fc.integer({ min: 1, max: 3 }),
      pages: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: is("history"),
      target: pick,
      runNumber: fc.option(fc.integer({ min: 1, max: 3 }), { freq: 3 }),
      order,
      pageSize: fc.integer({ min: 1, max: 3 }),
      pages: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 4, arbitrary: fc.record({ op: is("nextDueInMs"), lanes }) },
  { weight: 2, arbitrary: fc.record({ op: is("unknownLanes"), lanes }) },
  { weight: 2, arbitrary: fc.record({ op: is("registerHooks"), hooks }) },
  {
    weight: 1,
    arbitrary: fc.record({ op: is("unregisterHook"), hook: fc.constantFrom(...hookNames) }),
  },
  { weight: 5, arbitrary: fc.record({ op: is("claimHooks"), hooks }) },
  { weight: 5, arbitrary: fc.record({ op: is("settleHooks"), back: fc.nat(1), end: deliveryEnd }) },
  { weight: 1, arbitrary: fc.record({ op: is("failedHooks") }) },
  { weight: 1, arbitrary: fc.record({ op: is("retryHooks") }) },
);

/** A sequence begins with something to work on. */
export const operations: Arbitrary<Operation[]> = fc
  .tuple(
    fc.array<Operation>(fc.oneof(creates, claims), { maxLength: 6, size: "max" }),
    fc.array(operation, { maxLength: 110, size: "max" }),
  )
  .map(([opening, rest]) => [...opening, ...rest]);
