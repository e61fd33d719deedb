import { WorkflowError } from "../../src/model/errors.js";
import type { Store } from "../../src/store/store.js";
import type { Part, PartAnswer } from "../../src/store/part.js";
import type { Process } from "./world.js";

export type Verb = keyof Store;

export const faults = [
  "crashBefore",
  "crashAfter",
  "replyLost",
  "notApplied",
  "busy",
  "frozen",
  "slow",
  "late",
  // These are not faults but worst moments: somebody does this just before the call arrives.
  "pause",
  "restart",
] as const;
export type Fault = (typeof faults)[number];

/** A call that reached the database, and its answer, whether or not anyone heard it. */
export type Applied = {
  readonly process: Process;
  readonly verb: Verb;
  readonly args: readonly unknown[];
  readonly answer: unknown;
  readonly fault: Fault | null;
};

export interface FaultPlan {
  /** Decides before the call is sent. */
  faultOf(process: Process, verb: Verb, args: readonly unknown[]): Fault | null;
  /** Whether the database is away. */
  isOut(): boolean;
  crash(process: Process): void;
  /** Pauses or restarts an instance, as somebody might. */
  interfere(verb: "pause" | "restart"): Promise<void>;
  /** Tells that a process sends a call. `heard` tells that it hears the answer. */
  sending(process: Process, verb: Verb, args: readonly unknown[]): void;
  heard(process: Process, verb: Verb, args: readonly unknown[], answer: unknown): void;
  applied(op: Applied): void;
  /** How long a frozen process stays so, and a slow call takes. A late answer takes twice as long. */
  readonly freezeMs: number;
}

const MAX_LATENCY_MS = 3;

/** The store as one process sees it over a bad network. */
export function faultyStore(store: Store, process: Process, plan: FaultPlan): Store {
  const { world } = process;
  const send = (verb: Verb, member: Function, args: readonly unknown[]): Promise<unknown> =>
    new Promise((resolve, reject) => {
      plan.sending(process, verb, args);
      const hear = (answer: unknown): void => {
        plan.heard(process, verb, args, answer);
        resolve(answer);
      };
      const fault = plan.faultOf(process, verb, args);
      if (fault === "crashBefore") return plan.crash(process);
      const there = fault === "slow" ? plan.freezeMs : world.dice.upTo(MAX_LATENCY_MS);
      const back = fault === "late" ? 2 * plan.freezeMs : world.dice.upTo(MAX_LATENCY_MS);
      world.after(there, () => {
        const refuse = (): void => {
          world.after(back, () => process.enter(() => reject(away())));
        };
        // The request of a process that has died meanwhile may or may not arrive.
        if (!process.isAlive && world.dice.chance(0.5)) return;
        if (plan.isOut() || fault === "notApplied") return refuse();
        if (fault === "busy" && verb === "commit") {
          const answers = (args[0] as readonly Part[]).map((): PartAnswer => ({ kind: "busy" }));
          world.after(back, () => process.enter(() => hear(answers)));
          return;
        }
        const comesFirst =
          fault === "pause" || fault === "restart" ? plan.interfere(fault) : Promise.resolve();
        const call = (): Promise<unknown> => member.apply(store, args) as Promise<unknown>;
        comesFirst.then(call).then(
          (answer) => {
            plan.applied({ process, verb, args, answer, fault });
            if (fault === "crashAfter") return plan.crash(process);
            if (fault === "frozen") process.freeze(plan.freezeMs);
            if (fault === "replyLost") return refuse();
            world.after(back, () => process.enter(() => hear(answer)));
          },
          (error: unknown) => {
            world.after(back, () => process.enter(() => reject(error)));
          },
        );
      });
    });
  return new Proxy(store, {
    get(target, name) {
      if (name === "isRemote") return true;
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...args: unknown[]) => send(name as Verb, member, args);
    },
  });
}

function away(): WorkflowError {
  return new WorkflowError("STORE_UNAVAILABLE", "the database is busy or away");
}
