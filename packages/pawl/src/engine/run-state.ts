import type { RunOutcome } from "./code.js";
import type { FrozenPart } from "./part-draft.js";

/** A run's hold on its ticket. */
export type Hold =
  /** The ticket is leased, and no part is on its way. */
  | { readonly is: "idle" }
  /** A part is on its way. It is "leaving" if it gives the ticket up: it parks, releases or ends the run. */
  | FrozenPart
  /** The run waits in memory without its ticket. */
  | { readonly is: "parked"; wantsReopen: boolean }
  /** The claim is lost, or the run is over. Nothing of the run may be kept. */
  | { readonly is: "gone" };

/** The state of the workflow's code. */
export type CodeState =
  | { readonly is: "running" }
  /** The code calls no more steps, but its output is still being checked. */
  | { readonly is: "returned" }
  | { readonly is: "ended"; readonly outcome: RunOutcome }
  /** The code does not fit its history. The run rests, so that corrected code can go on. */
  | { readonly is: "held"; readonly forMs: number }
  /** A stop cut off the running bodies, so the code in memory must not go on. */
  | { readonly is: "cut" };

export const idle: Hold = { is: "idle" };
export const gone: Hold = { is: "gone" };
export const running: CodeState = { is: "running" };
export const returned: CodeState = { is: "returned" };
export const cutOff: CodeState = { is: "cut" };

/** The states that may follow each state. A run reports any other transition as a broken invariant. */
type Edges<State extends string> = { readonly [From in State]: readonly State[] };

export const holdEdges: Edges<Hold["is"]> = {
  idle: ["sending", "leaving", "gone"],
  sending: ["idle", "gone"],
  // It becomes idle again if the park was refused because events arrived first.
  leaving: ["idle", "parked", "gone"],
  parked: ["idle", "gone"],
  gone: [],
};

export const codeEdges: Edges<CodeState["is"]> = {
  running: ["returned", "ended", "held", "cut"],
  returned: ["ended", "held", "cut"],
  ended: [],
  held: [],
  cut: [],
};
