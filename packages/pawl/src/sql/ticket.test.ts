import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { edges, ticketStates, type EdgeName, type TicketEdge } from "../model/ticket.js";
import { mysqlDialect } from "./dialects/mysql.js";
import { postgresDialect } from "./dialects/postgres.js";
import { sqliteDialect } from "./dialects/sqlite.js";
import { Sql } from "./sql.js";
import {
  assignments,
  becomesSql,
  birthOf,
  claimOrTakeOver,
  endings,
  endTurnSet,
  setOf,
} from "./ticket.js";
import { everything } from "./verbs/claim.js";
import { sqlVerbs } from "./verbs/index.js";

const ends = ["park", "release", "goOn", "pauseAtBoundary"] as const;
const finishes = ["complete", "fail"] as const;

/** Every statement that inserts or deletes a ticket or writes its state, with the edges that it makes. */
const makers: Readonly<Record<string, readonly EdgeName[]>> = {
  "create.queued": ["create"],
  "create.leased": ["createLeased"],
  "create.tickets.queued": ["create"],
  "create.tickets.leased": ["createLeased"],
  claim: ["claim", "takeOver", "takeOverPausing"],
  "claim.lease": ["claim", "takeOver"],
  "claim.stop": ["takeOverPausing"],
  "reopen.lease": ["claim"],
  "event.lease": ["claim"],
  "event.send.leased": ["claim"],
  "commit.turn": [...ends, ...finishes],
  "commit.turn.new": [...ends, ...finishes],
  "commit.full": [...ends, ...finishes, "create"],
  "commit.tickets": ends,
  "commit.remove": finishes,
  "commit.spawns.tickets": ["create"],
  "control.pause": ["pause"],
  "control.requestPause": ["requestPause"],
  "control.cancelPause": ["cancelPause"],
  "control.resume": ["resume"],
  "control.ticket": ["restart"],
  "control.remove": ["terminate", "restart"],
};

for (const dialect of [sqliteDialect("pawl_"), postgresDialect("pawl"), mysqlDialect("pawl_")]) {
  describe(`the statements of ${dialect.name}`, () => {
    const sql = new Sql(dialect, undefined);
    const verbs = sqlVerbs(sql, () => "");
    const lanes = [{ queue: "default", handler: "a" }];
    // The text of a claim is written for a number of lanes, when it is needed first.
    const claim = verbs.claim.script(
      { runner: "r", lanes, limit: 1, reservedForNew: 0 },
      everything,
    );
    claim.next();
    claim.next([{ id: "r", dead: 0, now: 1 }]);
    const texts = new Map(sql.statements.map(({ name, text }) => [String(name), plain(text)]));
    const table = plain(dialect.table("ticket"));

    test("that write a ticket's state are all known", () => {
      const found = [...texts].filter(([, text]) => writesState(text, table)).map(([name]) => name);
      const known = Object.keys(makers).filter((name) => texts.has(name));
      expect(found.toSorted()).toEqual(known.toSorted());
    });

    test("make every edge, with the columns that the edge says", () => {
      const made = new Set<EdgeName>();
      for (const [name, by] of Object.entries(makers)) {
        const text = texts.get(name);
        if (text === undefined) continue;
        for (const edge of by) {
          made.add(edge);
          const ways = renderings(edge).map(plain);
          expect([name, edge, ways.some((way) => text.includes(way))]).toEqual([name, edge, true]);
        }
      }
      expect([...made].toSorted()).toEqual(Object.keys(edges).toSorted());
    });

    test("decide how a turn ends by the edges of a commit", () => {
      const deciding = [...texts]
        .filter(([, text]) => text.includes("AS becomes"))
        .map(([name]) => name);
      const decided = deciding.filter((name) => texts.get(name)?.includes(plain(becomesSql)));
      expect(decided.length).toBeGreaterThan(0);
      for (const edge of [...ends, ...finishes]) {
        const { set }: TicketEdge = edges[edge];
        expect(becomesSql).toContain(`'${set.state ?? "finished"}'`);
      }
    });
  });
}

test("a commit ends a turn by the commands of the edge", () => {
  for (const [made, condition] of endings) {
    const asked = condition.match(/'\w+'/g) ?? [];
    const commands = made.flatMap((edge): readonly string[] => edges[edge].by);
    // An edge without a command goes on although one was asked.
    if (commands.length > 0) expect(asked).toEqual(commands.map((command) => `'${command}'`));
  }
  const made = new Set(endings.flatMap(([some]): readonly EdgeName[] => some));
  expect([...made].toSorted()).toEqual([...ends, ...finishes].toSorted());
});

/** The texts by which a statement may make an edge, one of which it has. */
function renderings(edge: EdgeName): string[] {
  const { row }: TicketEdge = edges[edge];
  const times = [":at", "clock.now", "timed.now"];
  if (row === "deleted") return ["DELETE FROM", "DELETE t FROM"];
  if (row === "inserted") {
    const births = times.map((now) => birthOf(edge, now).values);
    return edge === "restart" ? [...births, "DELETE FROM"] : births;
  }
  const own = times.map((now) => assignments(setOf(edge, now)));
  if (edge === "claim" || edge === "takeOver") {
    const isTakeover = ["t.owner IS NOT NULL", "picked.precedence = -1"];
    const together = isTakeover.flatMap((is) => times.map((now) => claimOrTakeOver(is, now)));
    // An event leases the run only if it wakes it.
    const onEvent = Object.entries(setOf("claim", "timed.now"))
      .filter(([column]) => column !== "due_at")
      .map(
        ([column, value]) => `${column} = CASE WHEN timed.taken THEN ${value} ELSE t.${column} END`,
      );
    const either = together.map((set) => assignments(set));
    return edge === "takeOver" ? either : [...own, ...either, ...onEvent];
  }
  const isEnd = (ends as readonly EdgeName[]).includes(edge);
  return isEnd ? times.map((now) => assignments(endTurnSet(now))) : own;
}

/** The columns that tell whose turn it is; others (an event's count, a due time) may change in any state. */
const telling = ["state", "pause_requested", "owner", "claim_no", "run_no"];

function writesState(text: string, table: string): boolean {
  return (
    text.includes(`INSERT INTO ${table} `) ||
    text.includes(`DELETE FROM ${table} `) ||
    (text.startsWith("DELETE t FROM ") && text.includes(` ${table} AS t `)) ||
    assignedColumns(text, table).some((column) => telling.includes(column))
  );
}

/** The columns of the ticket that the UPDATEs of a statement assign. */
function assignedColumns(text: string, table: string): string[] {
  const [, ...updates] = text.split(/\bUPDATE (?=\S)/);
  return updates.flatMap((update) => {
    const [target = "", ...rest] = update.split(" SET ");
    if (!target.split(" ").includes(table)) return [];
    const columns: string[] = [];
    let depth = 0;
    let isName = true;
    for (const word of rest.join(" SET ").match(/[(),]|[^\s(),]+/g) ?? []) {
      if (word === "(") depth += 1;
      if (word === ")") depth -= 1;
      if (depth < 0 || (depth === 0 && /^(FROM|WHERE|RETURNING)$/.test(word))) break;
      if (isName) columns.push(word.replace(/^t\./, ""));
      isName = depth === 0 && word === ",";
    }
    return columns;
  });
}

/** A text without what differs between dialects: the places of values, and the alias that MySQL assigns with. */
function plain(text: string): string {
  return text
    .replaceAll(/\$\d+|:(?!:)\w+/g, "?")
    .replaceAll("`", "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/(?<=(SET|,) )t\.(\w+ = )/g, "$2")
    .trim();
}

test("a state is quoted in sql/ticket.ts and nowhere else", () => {
  const folder = new URL("./", import.meta.url);
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts") && file !== "ticket.ts",
  );
  expect(sources).toContain("schema.ts");
  const isWriting = new RegExp(`'(${ticketStates.join("|")})'|\\bstate = (?!\\$\\{stateWord)`);
  const writing = sources.filter((file) =>
    isWriting.test(readFileSync(new URL(file, folder), "utf8").replaceAll("const state = ", "")),
  );
  expect(writing).toEqual([]);
});
