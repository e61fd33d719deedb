import type { InstanceState } from "./status.js";

/** The commands that control an instance, in any state. */
export const controlCommands = ["pause", "resume", "terminate", "restart"] as const;
export type ControlCommand = (typeof controlCommands)[number];

/** The commands that people give to an instance, in any state. */
export const userCommands = [...controlCommands, "sendEvent"] as const;
export type UserCommand = (typeof userCommands)[number];

/**
 * The commands of a runner to an instance whose claim it holds. `claim` takes the instance, also from a dead owner;
 * `release` gives it back unfinished.
 */
export const engineCommands = ["claim", "park", "release", "complete", "fail"] as const;
type EngineCommand = (typeof engineCommands)[number];

export type Command = UserCommand | EngineCommand;

/**
 * Why a command is refused. `INSTANCE_TERMINAL` is an answer to the caller. `IMPOSSIBLE` is a broken invariant: claims
 * skip paused and terminal instances, and the fence stops every other engine command of a runner that lost its claim.
 */
type Refusal = "INSTANCE_TERMINAL" | "IMPOSSIBLE";

type TransitionRow = { readonly [C in Command]: InstanceState | Refusal };

const finished = (state: InstanceState): TransitionRow => ({
  pause: "INSTANCE_TERMINAL",
  resume: state,
  terminate: "INSTANCE_TERMINAL",
  restart: "queued",
  sendEvent: "INSTANCE_TERMINAL",
  claim: "IMPOSSIBLE",
  park: "IMPOSSIBLE",
  release: "IMPOSSIBLE",
  complete: "IMPOSSIBLE",
  fail: "IMPOSSIBLE",
});

/**
 * Where each command leads from each state. A command that leads to its own state has no effect on the status. How the
 * ticket's row changes with it stands in `ticket.ts`.
 */
export const transitions: { readonly [S in InstanceState]: TransitionRow } = {
  queued: {
    pause: "paused",
    resume: "queued",
    terminate: "terminated",
    restart: "queued",
    sendEvent: "queued",
    claim: "running",
    park: "IMPOSSIBLE",
    release: "IMPOSSIBLE",
    complete: "IMPOSSIBLE",
    fail: "IMPOSSIBLE",
  },
  running: {
    pause: "waitingForPause",
    resume: "running",
    terminate: "terminated",
    restart: "queued",
    sendEvent: "running",
    claim: "running",
    park: "waiting",
    release: "queued",
    complete: "complete",
    fail: "errored",
  },
  waiting: {
    pause: "paused",
    resume: "waiting",
    terminate: "terminated",
    restart: "queued",
    sendEvent: "waiting",
    claim: "running",
    park: "IMPOSSIBLE",
    release: "IMPOSSIBLE",
    complete: "IMPOSSIBLE",
    fail: "IMPOSSIBLE",
  },
  waitingForPause: {
    pause: "waitingForPause",
    resume: "running", // cancels the pending pause: a person who resumes wants it to go on
    terminate: "terminated",
    restart: "queued",
    sendEvent: "waitingForPause",
    claim: "paused", // the owner died before it could pause: no code runs
    park: "paused",
    release: "paused",
    complete: "complete", // finish beats pause
    fail: "errored",
  },
  paused: {
    pause: "paused",
    resume: "queued",
    terminate: "terminated",
    restart: "queued",
    sendEvent: "paused",
    claim: "IMPOSSIBLE",
    park: "IMPOSSIBLE",
    release: "IMPOSSIBLE",
    complete: "IMPOSSIBLE",
    fail: "IMPOSSIBLE",
  },
  complete: finished("complete"),
  errored: finished("errored"),
  terminated: finished("terminated"),
};

type TransitionResult = { readonly state: InstanceState } | { readonly refused: Refusal };

export function transition(state: InstanceState, command: Command): TransitionResult {
  const next = transitions[state][command];
  return next === "INSTANCE_TERMINAL" || next === "IMPOSSIBLE"
    ? { refused: next }
    : { state: next };
}
