import { expect, test } from "vitest";
import { guardedLogger } from "../model/logger.js";
import { webRuntime } from "../runtime.js";
import { targetKey } from "../model/target.js";
import type { Hint, HintChannel, HintListener, Teller } from "../store/hints.js";
import { EndListeners } from "./end-listeners.js";
import { PeerHints } from "./peer-hints.js";

const target = { workflow: "order", id: "a" };

function setUp() {
  const told: (readonly [kind: Hint["kind"], to: Teller])[] = [];
  let listener: HintListener | null = null;
  const channel: HintChannel = {
    isListening: true,
    listen(given) {
      listener = given;
      return () => {};
    },
    async tell({ kind }, to = "all") {
      told.push([kind, to]);
    },
  };
  const waiters = new EndListeners(webRuntime.scheduler);
  const events = { due() {}, changed() {} };
  const others = new PeerHints(channel, webRuntime, guardedLogger(undefined), waiters, events);
  others.listen(true);
  const ask = (asker: Teller): void => listener?.hear({ kind: "awaited", target }, asker);
  return { others, told, ask, hear: (hint: Hint) => listener?.hear(hint, "other"), waiters };
}

test("each process that asked for an end is told, alone", () => {
  const { others, told, ask } = setUp();
  for (const asker of ["a", "b", "a"]) ask(asker);
  others.ended(target);
  expect(told).toEqual([
    ["ended", "a"],
    ["ended", "b"],
  ]);
});

test("all processes are told if many have asked", () => {
  const { others, told, ask } = setUp();
  for (let n = 0; n < 150; n++) ask(`process ${n}`);
  others.ended(target);
  expect(told).toEqual([["ended", "all"]]);
});

test("a process that asks after the end is told once for each end", () => {
  const { others, told, ask } = setUp();
  others.ended(target);
  for (let n = 0; n < 3; n++) ask("late");
  expect(told).toEqual([["ended", "late"]]);
  others.ended(target);
  expect(told).toEqual([
    ["ended", "late"],
    ["ended", "late"],
  ]);
});

test("a listener hears of ends since it was opened, and how the run ended", async () => {
  const { hear, waiters } = setUp();
  const key = targetKey(target);
  const ended = { status: "complete", output: "1", error: null } as const;
  const early = waiters.listen(key);
  waiters.tell(key, ended);
  const late = waiters.listen(key);
  expect(await early.heard(60_000)).toEqual(ended);
  expect(await late.heard(1)).toBeNull();
  const hinted = waiters.listen(key);
  hear({ kind: "ended", target });
  expect(await hinted.heard(60_000)).toBeNull();
  const closed = waiters.listen(key);
  closed.close();
  waiters.tell(key, ended);
  expect(await closed.heard(1)).toBeNull();
});
