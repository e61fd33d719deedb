import { expect, test } from "vitest";
import { show } from "./show.js";

test.each<[unknown, string]>([
  [undefined, "undefined"],
  [null, "null"],
  [-0.5, "-0.5"],
  [10n, "10n"],
  ['a "b"\n', '"a \\"b\\"\\n"'],
  [{}, "{}"],
  [{ a: 1, "b c": [true, undefined] }, '{ a: 1, "b c": [true, undefined] }'],
  [new Date(0), "Date 1970-01-01T00:00:00.000Z"],
  [new Date(Number.NaN), "Date invalid"],
  [new Map([["a", { b: 1 }]]), 'Map { "a" => { b: 1 } }'],
  [new Set([1, 2n]), "Set { 1, 2n }"],
  [new Uint8Array(3), "Uint8Array of 3 bytes"],
  [new ArrayBuffer(2), "ArrayBuffer of 2 bytes"],
  [[new TypeError("no")], "[TypeError: no]"],
  [{ a: { b: { c: { d: {} } } } }, "{ a: { b: { c: { d: … } } } }"],
])("%s is shown as %s", (value, shown) => {
  expect(show(value)).toBe(shown);
});

test("the text is bounded, and never cut within a character", () => {
  expect(show(Array(10_000).fill(1))).toBe(`[${"1, ".repeat(20)}…]`);
  const long = show({ text: "😀".repeat(1_000_000) });
  expect(long.length).toBeLessThanOrEqual(501);
  expect(() => encodeURIComponent(long)).not.toThrow(); // a lone surrogate would throw
});
