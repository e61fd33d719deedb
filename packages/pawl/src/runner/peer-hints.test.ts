import { expect, test } from "vitest";
import { guardedLogger } from "../model/logger.js";
import { webRuntime } from "../runtime.js";
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

test("who asked for an end is told, each alone", () => {
  const { others, told, ask } = setUp();
  for (const asker of ["a", "b", "a"]) ask(asker);
  others.ended(target, null);
  expect(told).toEqual([
    ["ended", "a"],
    ["ended", "b"],
  ]);
});

test("where many have asked all are told", () => {
  const { others, told, ask } = setUp();
  for (let n = 0; n < 150; n++) ask(`process ${n}`);
  others.ended(target, null);
  expect(told).toEqual([["ended", "all"]]);
});

test("who asks after the end is told once for each end", () => {
  const { others, told, ask } = setUp();
  others.ended(target, null);
  for (let n = 0; n < 3; n++) ask("late");
  expect(told).toEqual([["ended", "late"]]);
  others.ended(target, null);
  expect(told).toEqual([
    ["ended", "late"],
    ["ended", "late"],
  ]);
});

test("an ear hears what was told since it was opened, and how it ended", async () => {
  const { others, hear, waiters } = setUp();
  const ended = { status: "complete", output: "1", error: null } as const;
  const early = waiters.ear(target);
  others.ended(target, ended);
  const late = waiters.ear(target);
  expect(await early.heard(60_000)).toEqual(ended);
  expect(await late.heard(1)).toBeNull();
  const hinted = waiters.ear(target);
  hear({ kind: "ended", target });
  expect(await hinted.heard(60_000)).toBeNull();
  const closed = waiters.ear(target);
  closed.close();
  others.ended(target, ended);
  expect(await closed.heard(1)).toBeNull();
});
