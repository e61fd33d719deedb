import { expect, test } from "vitest";
import { nearest } from "../nearest.js";
import { wire } from "./json.js";
import { shellWord } from "./shell.js";
import { table } from "./table.js";
import { ago, counted, cut, duration, visible } from "./text.js";

test.each([
  [-5, "0 ms"],
  [0, "0 ms"],
  [0.6, "1 ms"],
  [900, "900 ms"],
  [999.7, "1 s"],
  [1_250, "1.3 s"],
  [9_960, "10 s"],
  [12_600, "13 s"],
  [59_400, "59 s"],
  [59_999, "1 min"],
  [90_000, "1.5 min"],
  [3_600_000, "1 h"],
  [86_390_000, "1 d"],
  [86_400_000 * 40, "40 d"],
])("%d ms is shown as %s", (ms, shown) => expect(duration(ms)).toBe(shown));

test("times are shown relative to now, and counts with their nouns", () => {
  expect(ago(new Date(1_000), 3_000)).toBe("2 s ago");
  expect(ago(new Date(3_000), 1_000)).toBe("in 2 s");
  expect([counted(1, "run"), counted(1_200, "run")]).toEqual(["1 run", "1,200 runs"]);
});

test("invisible characters are escaped for a terminal, and cuts keep characters whole", () => {
  expect(visible("a\u001B[31m\n\u202Eb\u2028")).toBe(String.raw`a\u{1b}[31m\n\u{202e}b\u{2028}`);
  expect(cut("🙂🙂🙂", 2)).toBe("🙂…");
  expect(cut("abc", 3)).toBe("abc");
});

test("columns are as wide as their content, and the last one is cut at the terminal's width", () => {
  const rows = [
    ["ID", "X"],
    ["\u001B[31mlong\u001B[39m", "y".repeat(40)],
  ];
  expect(table(rows, undefined)[0]).toBe("ID    X");
  expect(table(rows, 20)[1]).toBe(`\u001B[31mlong\u001B[39m  ${"y".repeat(13)}…`);
});

test("nearest finds the word for a slip, and none for other words", () => {
  const words = ["order", "receipt"];
  expect(["ordr", "ORDER", "rec", "xyz", ""].map((word) => nearest(word, words))).toEqual([
    "order",
    "order",
    "receipt",
    undefined,
    undefined,
  ]);
});

test("shellWord quotes words where a shell needs it", () => {
  expect(["order-1", "fails always", "it's"].map(shellWord)).toEqual([
    "order-1",
    "'fails always'",
    String.raw`'it'\''s'`,
  ]);
});

test("wire writes times as ISO, and tags users' values only", () => {
  const at = new Date(0);
  expect(wire({ at, output: { output: at }, entries: [{ result: 1n }] })).toEqual({
    at: at.toISOString(),
    output: { output: { $pawl: "Date", value: at.toISOString() } },
    entries: [{ result: { $pawl: "bigint", value: "1" } }],
  });
});
