import { expect, it } from "vitest";
import { quote } from "./quote.js";

it("shows text in quotes, and everything else by its kind", () => {
  expect(quote("a b")).toBe('"a b"');
  expect(quote('a "b" \\')).toBe('"a \\"b\\" \\\\"');
  expect(quote(1.5)).toBe("1.5");
  expect(quote(Number.NaN)).toBe("NaN");
  expect(quote(true)).toBe("true");
  expect(quote(undefined)).toBe("undefined");
  expect(quote(null)).toBe("null");
  expect(quote({})).toBe("an object");
  expect(quote(10n ** 1000n)).toBe("a bigint");
  expect(quote(Symbol("s"))).toBe("a symbol");
  expect(quote(() => 1)).toBe("a function");
});

it("escapes invisible characters", () => {
  expect(quote("\u0000\n\u001b[31m")).toBe('"\\u{0}\\u{a}\\u{1b}[31m"');
  expect(quote("\ud800")).toBe('"\\u{d800}"');
  expect(quote("\u202ereversed\u2028")).toBe('"\\u{202e}reversed\\u{2028}"');
});

it("cuts at 40 code points, never within one", () => {
  expect(quote("a".repeat(40))).toBe(`"${"a".repeat(40)}"`);
  expect(quote("a".repeat(41))).toBe(`"${"a".repeat(40)}…"`);
  expect(quote("😀".repeat(41))).toBe(`"${"😀".repeat(40)}…"`);
  expect(quote(`a${"😀".repeat(40)}`)).toBe(`"a${"😀".repeat(39)}…"`);
});
