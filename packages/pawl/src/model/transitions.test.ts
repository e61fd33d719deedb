import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isTerminal, liveStates, terminalStates, type InstanceState } from "./status.js";
import {
  engineCommands,
  transition,
  transitions,
  userCommands,
  type Command,
} from "./transitions.js";

const states = Object.keys(transitions) as InstanceState[];
const commands: Command[] = [...userCommands, ...engineCommands];

/** Returns where a sequence of commands leads. A refused command changes nothing. */
function follow(start: InstanceState, sequence: Command[]): InstanceState {
  return sequence.reduce((state, command) => {
    const result = transition(state, command);
    return "state" in result ? result.state : state;
  }, start);
}

const anyState = fc.constantFrom(...states);
const anyCommands = fc.array(fc.constantFrom(...commands), { maxLength: 30 });

describe("transition", () => {
  it("knows every state and command", () => {
    expect(states.toSorted()).toEqual([...liveStates, ...terminalStates].toSorted());
    for (const state of states) {
      expect(Object.keys(transitions[state]).toSorted()).toEqual(commands.toSorted());
    }
  });

  it("pauses an instance at once unless it runs, and else at the next step boundary", () => {
    expect(transition("queued", "pause")).toEqual({ state: "paused" });
    expect(transition("waiting", "pause")).toEqual({ state: "paused" });
    expect(transition("running", "pause")).toEqual({ state: "waitingForPause" });
    expect(transition("waitingForPause", "park")).toEqual({ state: "paused" });
    expect(transition("waitingForPause", "release")).toEqual({ state: "paused" });
  });

  it("runs no code of a pausing instance whose owner died", () => {
    expect(transition("waitingForPause", "claim")).toEqual({ state: "paused" });
    expect(transition("running", "claim")).toEqual({ state: "running" });
  });

  it("lets a finish beat a pause", () => {
    expect(transition("waitingForPause", "complete")).toEqual({ state: "complete" });
    expect(transition("waitingForPause", "fail")).toEqual({ state: "errored" });
  });

  it("resumes only a paused or pausing instance", () => {
    for (const state of states) {
      const expected = { paused: "queued", waitingForPause: "running" }[state as string] ?? state;
      expect(transition(state, "resume")).toEqual({ state: expected });
    }
  });

  it("gives a released instance back as queued, and a parked one as waiting", () => {
    expect(transition("running", "release")).toEqual({ state: "queued" });
    expect(transition("running", "park")).toEqual({ state: "waiting" });
  });

  it("keeps the status when an event arrives, and refuses events after the end", () => {
    for (const state of liveStates) expect(transition(state, "sendEvent")).toEqual({ state });
    for (const state of terminalStates) {
      expect(transition(state, "sendEvent")).toEqual({ refused: "INSTANCE_TERMINAL" });
    }
  });

  it("terminates every live instance, once", () => {
    for (const state of liveStates) {
      expect(transition(state, "terminate")).toEqual({ state: "terminated" });
    }
    for (const state of terminalStates) {
      expect(transition(state, "terminate")).toEqual({ refused: "INSTANCE_TERMINAL" });
      expect(transition(state, "pause")).toEqual({ refused: "INSTANCE_TERMINAL" });
    }
  });

  it("restarts from every state", () => {
    for (const state of states) expect(transition(state, "restart")).toEqual({ state: "queued" });
  });

  it("never answers a user with IMPOSSIBLE, nor the engine with INSTANCE_TERMINAL", () => {
    for (const state of states) {
      for (const command of userCommands) {
        expect(transition(state, command)).not.toEqual({ refused: "IMPOSSIBLE" });
      }
      for (const command of engineCommands) {
        expect(transition(state, command)).not.toEqual({ refused: "INSTANCE_TERMINAL" });
      }
    }
  });

  it("lets only an executing instance park, be given back or finish", () => {
    for (const state of states) {
      const executing = state === "running" || state === "waitingForPause";
      for (const command of ["park", "release", "complete", "fail"] as const) {
        expect("state" in transition(state, command)).toBe(executing);
      }
    }
  });

  it("never leaves a terminal state, except by restart", () => {
    fc.assert(
      fc.property(fc.constantFrom(...terminalStates), anyCommands, (start, sequence) => {
        const withoutRestart = sequence.filter((command) => command !== "restart");
        expect(follow(start, withoutRestart)).toBe(start);
      }),
    );
  });

  it("starts no code of a paused instance before it is resumed or restarted", () => {
    fc.assert(
      fc.property(anyCommands, (sequence) => {
        const held = sequence.filter((command) => command !== "resume" && command !== "restart");
        expect(["paused", "terminated"]).toContain(follow("paused", held));
      }),
    );
  });

  it("makes pause, resume and restart idempotent", () => {
    fc.assert(
      fc.property(anyState, fc.constantFrom("pause", "resume", "restart"), (state, command) => {
        expect(follow(state, [command, command])).toBe(follow(state, [command]));
      }),
    );
  });

  it("leads from every state to an end, so that no live state is a dead end", () => {
    fc.assert(
      fc.property(anyState, anyCommands, (start, sequence) => {
        const state = follow(start, sequence);
        const wayOut: Command[] = ["resume", "claim", "complete"];
        expect(isTerminal(follow(state, wayOut))).toBe(true);
      }),
    );
  });
});
