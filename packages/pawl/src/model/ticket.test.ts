import { describe, expect, test } from "vitest";
import { isTerminal, liveStates, type InstanceState, type LiveState } from "./status.js";
import {
  edges,
  statusOfTicket,
  ticketStates,
  userEdge,
  type EdgeName,
  type TicketEdge,
  type TicketState,
} from "./ticket.js";
import { engineCommands, transitions, controlCommands, userCommands } from "./transitions.js";

/** How each status of a live instance looks on its ticket. */
const ticketOf: {
  readonly [S in LiveState]: { readonly state: TicketState; readonly pauseRequested: boolean };
} = {
  queued: { state: "queued", pauseRequested: false },
  running: { state: "leased", pauseRequested: false },
  waiting: { state: "waiting", pauseRequested: false },
  waitingForPause: { state: "leased", pauseRequested: true },
  paused: { state: "paused", pauseRequested: false },
};

const all = Object.entries<TicketEdge>(edges) as [EdgeName, TicketEdge][];
const states = Object.keys(transitions) as InstanceState[];

/** Each way along an edge: the status before it, and that after it. A new instance has no status before. */
const ways = all.flatMap(([name, edge]) =>
  (edge.from.length === 0 ? [null] : edge.from).map((from) => {
    const to = edge.to === "same" ? (from as InstanceState) : edge.to;
    return { name, edge, from, to };
  }),
);
const stateOf = (status: InstanceState | null) =>
  status === null || isTerminal(status) ? null : ticketOf[status].state;

describe("the edges of a ticket", () => {
  test("lead where the transition table says", () => {
    for (const { name, edge, from, to } of ways) {
      for (const command of edge.by) {
        const cell =
          command === "create" || from === null
            ? "queued"
            : transitions[from as LiveState][command];
        expect(`${name}: ${from} to ${to}`).toBe(`${name}: ${from} to ${cell}`);
      }
    }
  });

  test("make every change that the transition table knows", () => {
    for (const from of states) {
      for (const command of [...userCommands, ...engineCommands]) {
        const to = transitions[from][command];
        const isChange = to in transitions && (to !== from || command === "restart");
        const made = ways.filter((way) => way.from === from && way.edge.by.includes(command));
        const edgesOf = `edges of model/ticket.ts: ${command} from ${from}`;
        if (isChange)
          expect(
            made.map((way) => way.to),
            edgesOf,
          ).toContain(to);
        if (!(to in transitions)) expect(made).toEqual([]);
      }
    }
  });

  test("carry out every command that controls an instance", () => {
    const carriedOut = new Set(ways.flatMap(({ edge }) => edge.by));
    for (const command of controlCommands) {
      expect(carriedOut, `edges of model/ticket.ts: ${command}`).toContain(command);
    }
  });

  test("keep the status if no command makes them", () => {
    for (const { edge, from, to } of ways) if (edge.by.length === 0) expect(to).toBe(from);
  });

  test("write the state and the pause that the status shows", () => {
    for (const { edge, from, to } of ways) {
      if (edge.row === "deleted") {
        expect(isTerminal(to)).toBe(true);
        continue;
      }
      const { state, pauseRequested } = ticketOf[to as LiveState];
      expect(edge.set.state ?? stateOf(from)).toBe(state);
      const flag = edge.set.pause_requested;
      const before = from === null || isTerminal(from) ? false : ticketOf[from].pauseRequested;
      const kept = edge.row === "inserted" ? false : before;
      expect(flag === undefined ? kept : flag === 1).toBe(pauseRequested);
    }
  });

  test("leave every ticket with an owner, a time, a wait or a pause", () => {
    for (const { edge, from, to } of ways) {
      const { set, row } = edge;
      const wasLeased = row === "updated" && stateOf(from) === "leased";
      const isOwned = set.owner === undefined ? wasLeased : set.owner !== null;
      switch (row === "deleted" ? null : stateOf(to)) {
        case "leased":
          expect(isOwned).toBe(true);
          if (!wasLeased) expect(set.due_at).toBe(null);
          break;
        case "queued":
          expect(isOwned).toBe(false);
          expect([":now", ":wake"]).toContain(set.due_at);
          break;
        case "waiting":
          expect(isOwned).toBe(false);
          expect([set.due_at, set.wait_mask]).toEqual([":wake", ":part"]);
          break;
        case "paused":
          expect(isOwned).toBe(false);
          if (!wasLeased) expect(set.due_at).toBe(null);
          break;
        case null:
          expect(row).toBe("deleted");
      }
    }
  });

  test("give a ticket an owner only by a claim, under a new claim number", () => {
    for (const { edge, from } of ways) {
      if (edge.set.owner !== ":runner") continue;
      expect(edge.by).toEqual(["claim"]);
      expect(edge.set.claim_no).toBe(edge.row === "inserted" ? 1 : ":next");
      expect(from).not.toBe("paused");
    }
  });

  test("answer what a person's command does, once", () => {
    for (const from of states) {
      for (const command of userCommands) {
        const made = ways.filter((way) => way.from === from && way.edge.by.includes(command));
        expect(made.length).toBeLessThanOrEqual(1);
        expect(userEdge(from, command)).toBe(made[0]?.name ?? null);
      }
    }
  });
});

describe("the status of a ticket", () => {
  test("is read back as it is written", () => {
    for (const status of liveStates) {
      const { state, pauseRequested } = ticketOf[status];
      expect(statusOfTicket(state, pauseRequested)).toBe(status);
    }
    expect(new Set(liveStates.map((status) => ticketOf[status].state))).toEqual(
      new Set(ticketStates),
    );
  });

  test("is unknown without a ticket, and in a state of newer code", () => {
    expect(statusOfTicket(null, false)).toBe("unknown");
    expect(statusOfTicket("dreaming", false)).toBe("unknown");
  });
});
