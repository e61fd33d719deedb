import type { InstanceState, LiveState } from "./status.js";
import type { Command, UserCommand } from "./transitions.js";

/*
 * The life of a ticket, which is the row of a live run. Its states, every edge between them and the columns that each
 * edge writes stand here and nowhere else: `sql/ticket.ts` renders SQL from this file, and tests hold the edges against
 * the transition table, in both directions.
 *
 * To add an edge, add an entry to `edges` and a cell to the transition table. If a commit makes the
 * edge, add its condition to `endings` in `sql/ticket.ts`; otherwise let a verb render it with `setOf` or `birthOf`.
 * Then name the statement that makes it in `sql/ticket.test.ts`.
 */

export const ticketStates = ["queued", "waiting", "leased", "paused"] as const;
export type TicketState = (typeof ticketStates)[number];

/** The status that a ticket shows. Code that is newer may have written a state that this code does not know. */
export function statusOfTicket(
  state: string | null,
  pauseRequested: boolean,
): LiveState | "unknown" {
  switch (state as TicketState | null) {
    case "queued":
    case "waiting":
    case "paused":
      return state as "queued" | "waiting" | "paused";
    case "leased":
      return pauseRequested ? "waitingForPause" : "running";
    default:
      return "unknown";
  }
}

/** The value that an edge writes into a column, or where that value comes from. */
export type Filling =
  | number
  | null
  | TicketState
  /** The time of the write. */
  | ":now"
  /** The time of the write, unless the column holds a later one: the clock may step back. */
  | ":latest"
  /** The time of the write, unless the column holds a time already. */
  | ":first"
  /** The runner that takes the ticket. */
  | ":runner"
  /** One more than before. */
  | ":next"
  /** The value that the part brings for this column. */
  | ":part"
  /** The same, unless the part leaves it open. */
  | ":partOrKept"
  /** The time at which the part's wait ends. */
  | ":wake"
  /** The value of this column on the instance. */
  | ":instance";

type TicketColumn =
  | "class"
  | "run_no"
  | "claim_no"
  | "owner"
  | "due_at"
  | "wait_mask"
  | "pause_requested"
  | "seen_at"
  | "part_no"
  | "takeovers"
  | "history_bytes"
  | "started_at";

type TicketSet = { readonly [C in TicketColumn]?: Exclude<Filling, TicketState> } & {
  readonly state?: TicketState;
};

export type TicketEdge = {
  /** The statuses from which it leads; none for a new instance. */
  readonly from: readonly InstanceState[];
  /** The status to which it leads. */
  readonly to: InstanceState | "same";
  /** The commands that it carries out: each of them leads there. None for an edge that leaves the status as it is, unless it is a restart. */
  readonly by: readonly (Command | "create")[];
  /** Whether the ticket's row is inserted, updated or deleted. */
  readonly row: "inserted" | "updated" | "deleted";
  /** The columns that it writes; the others stay, or have their defaults in a new row. */
  readonly set: TicketSet;
};

const live = ["queued", "running", "waiting", "waitingForPause", "paused"] as const;

/** A claim takes the ticket out of the index of due ones. Only an edge that claims gives a ticket an owner. */
const leased = {
  state: "leased",
  owner: ":runner",
  claim_no: ":next",
  class: 0,
  due_at: null,
  part_no: 0,
  seen_at: ":latest",
  started_at: ":first",
} as const satisfies TicketSet;

export const edges = {
  create: {
    from: [],
    to: "queued",
    by: ["create"],
    row: "inserted",
    set: { class: 1, state: "queued", run_no: 1, claim_no: 0, due_at: ":now" },
  },
  /** A ticket that is born leased to the creator's own runner: claimed before anybody has seen it queued. */
  createLeased: {
    from: ["queued"],
    to: "running",
    by: ["claim"],
    row: "inserted",
    set: {
      class: 0,
      state: "leased",
      run_no: 1,
      claim_no: 1,
      owner: ":runner",
      due_at: null,
      seen_at: ":now",
      started_at: ":now",
    },
  },

  claim: { from: ["queued", "waiting"], to: "running", by: ["claim"], row: "updated", set: leased },
  /** The owner was declared dead. */
  takeOver: {
    from: ["running"],
    to: "running",
    by: ["claim"],
    row: "updated",
    set: { takeovers: ":next", ...leased },
  },
  /** The owner died before it could pause the run, which is paused without running code. Its resumer takes it over. */
  takeOverPausing: {
    from: ["waitingForPause"],
    to: "paused",
    by: ["claim"],
    row: "updated",
    set: {
      state: "paused",
      owner: null,
      claim_no: ":next",
      pause_requested: 0,
      takeovers: ":next",
    },
  },

  // How a commit leaves the ticket. No column is computed from another one that is assigned here.
  park: {
    from: ["running"],
    to: "waiting",
    by: ["park"],
    row: "updated",
    set: {
      state: "waiting",
      owner: null,
      due_at: ":wake",
      wait_mask: ":part",
      takeovers: 0,
      history_bytes: ":part",
      part_no: ":part",
    },
  },
  release: {
    from: ["running"],
    to: "queued",
    by: ["release"],
    row: "updated",
    set: {
      state: "queued",
      owner: null,
      due_at: ":wake",
      wait_mask: ":part",
      takeovers: 0,
      history_bytes: ":part",
      part_no: ":part",
    },
  },
  /** The turn goes on: the part did not end it, or asked to park when there were events that it had not seen. */
  goOn: {
    from: ["running", "waitingForPause"],
    to: "same",
    by: [],
    row: "updated",
    set: { state: "leased", due_at: null, takeovers: ":partOrKept", part_no: ":part" },
  },
  /** A pause that was asked for during the turn beats its park and its release. */
  pauseAtBoundary: {
    from: ["waitingForPause"],
    to: "paused",
    by: ["park", "release"],
    row: "updated",
    set: {
      state: "paused",
      owner: null,
      due_at: null,
      wait_mask: ":part",
      pause_requested: 0,
      takeovers: 0,
      history_bytes: ":part",
      part_no: ":part",
    },
  },
  complete: {
    from: ["running", "waitingForPause"],
    to: "complete",
    by: ["complete"],
    row: "deleted",
    set: {},
  },
  fail: {
    from: ["running", "waitingForPause"],
    to: "errored",
    by: ["fail"],
    row: "deleted",
    set: {},
  },

  // Commands of people.
  pause: {
    from: ["queued", "waiting"],
    to: "paused",
    by: ["pause"],
    row: "updated",
    set: { state: "paused", due_at: null },
  },
  requestPause: {
    from: ["running"],
    to: "waitingForPause",
    by: ["pause"],
    row: "updated",
    set: { pause_requested: 1 },
  },
  cancelPause: {
    from: ["waitingForPause"],
    to: "running",
    by: ["resume"],
    row: "updated",
    set: { pause_requested: 0 },
  },
  resume: {
    from: ["paused"],
    to: "queued",
    by: ["resume"],
    row: "updated",
    set: { state: "queued", due_at: ":now" },
  },
  terminate: { from: live, to: "terminated", by: ["terminate"], row: "deleted", set: {} },
  /** A live run's ticket is deleted first. The new one has the next claim number, which fences the old run. */
  restart: {
    from: [...live, "complete", "errored", "terminated"],
    to: "queued",
    by: ["restart"],
    row: "inserted",
    set: {
      class: 1,
      state: "queued",
      run_no: ":instance",
      claim_no: ":instance",
      due_at: ":now",
    },
  },
} as const satisfies Record<string, TicketEdge>;

export type EdgeName = keyof typeof edges;
/** The edges that people ask for. */
export type UserEdgeName = {
  [E in EdgeName]: (typeof edges)[E]["by"][number] extends UserCommand ? E : never;
}[Exclude<EdgeName, "goOn">];

/** The edge by which a command leads out of a status; null if it changes nothing there. */
export function userEdge(status: InstanceState, command: UserCommand): UserEdgeName | null {
  for (const [name, { from, by }] of Object.entries<TicketEdge>(edges)) {
    if (by.includes(command) && from.includes(status)) return name as UserEdgeName;
  }
  return null;
}
