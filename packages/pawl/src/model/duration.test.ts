import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDurationMs } from "./duration.js";
import { ValidationError } from "./errors.js";

const parse = (given: unknown, bounds: { minMs?: number; maxMs?: number } = {}): number =>
  parseDurationMs(given as string | number, { field: "timeout", ...bounds });

const secondMs = 1_000;
const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;

describe("parseDurationMs", () => {
  it.each([
    ["10 seconds", 10 * secondMs],
    ["1 second", secondMs],
    ["1 hour", hourMs],
    ["24 hours", 24 * hourMs],
    ["1h 30m", 90 * minuteMs],
    ["1h30m", 90 * minuteMs],
    ["1.5 hours", 90 * minuteMs],
    ["1.1 hours", 66 * minuteMs],
    ["500ms", 500],
    ["500 milliseconds", 500],
    ["2 weeks", 14 * dayMs],
    ["1 day 2 hours", 26 * hourMs],
    ["1 month", 30 * dayMs],
    ["2 months", 60 * dayMs],
    ["1 year", 365 * dayMs],
    ["5 min", 5 * minuteMs],
    ["  3 s ", 3 * secondMs],
    ["0 seconds", 0],
    ["0.4 ms", 0],
    ["0.6 ms", 1],
  ])("reads %j", (given, ms) => {
    expect(parse(given)).toBe(ms);
  });

  it.each([
    [0, 0],
    [-0, 0],
    [1, 1],
    [1.5, 2],
    [31_536_000_000, 365 * dayMs],
  ])("takes the number %d as milliseconds", (given, ms) => {
    expect(parse(given)).toBe(ms);
  });

  it.each([
    "banana",
    "",
    " ",
    "10",
    "10 bananas",
    "ten seconds",
    "seconds",
    "-5 seconds",
    "+5 seconds",
    "1 hour 30",
    "1 hour, 30 minutes",
    "1e3 seconds",
    "1.s",
    ".5 hours",
    "1..5 hours",
    "Infinity seconds",
    "1 toString",
    "1 constructor",
    `${"1".repeat(200)} ms`,
    Number.NaN,
    null,
    undefined,
    {},
    [1],
    1n,
    true,
    new Date(0),
  ])("refuses %s and says what a duration is", (given) => {
    expect(() => parse(given)).toThrow(ValidationError);
    expect(() => parse(given)).toThrow(/^timeout must be a duration such as .*, got /);
  });

  it("names what was given", () => {
    expect(() => parse("banana")).toThrow('got "banana"');
    expect(() => parse(Number.NaN)).toThrow("got NaN");
  });

  it.each([-1, -0.1, -Infinity])("refuses the negative number %d", (given) => {
    expect(() => parse(given)).toThrow(`timeout must be at least 0 ms, got ${given}`);
  });

  it.each([Infinity, "366 days", 365 * dayMs + 1, "9".repeat(50) + " years"])(
    "refuses %s: over 365 days",
    (given) => {
      expect(() => parse(given)).toThrow(ValidationError);
      expect(() => parse(given)).toThrow("timeout must be at most 365 days, got ");
    },
  );

  it("keeps to the bounds it is given, both included", () => {
    const bounds = { minMs: 1_000, maxMs: 90_000 };
    expect(parse("1 second", bounds)).toBe(1_000);
    expect(parse("90 seconds", bounds)).toBe(90_000);
    expect(() => parse(999, bounds)).toThrow("at least 1 seconds, got 999");
    expect(() => parse(90_001, bounds)).toThrow("at most 90 seconds, got 90001");
  });

  it("adds its terms, in any order and spacing", () => {
    const factors = { ms: 1, s: secondMs, minutes: minuteMs, h: hourMs, days: dayMs };
    const units = Object.keys(factors) as (keyof typeof factors)[];
    const term = fc.record({ count: fc.nat(99), unit: fc.constantFrom(...units) });
    const gap = fc.constantFrom("", " ", "  ");
    fc.assert(
      fc.property(
        fc.array(term, { minLength: 1, maxLength: 3 }),
        gap,
        gap,
        (terms, inner, outer) => {
          const text = terms.map(({ count, unit }) => `${count}${inner}${unit}`).join(outer);
          const sumMs = terms.reduce((sum, { count, unit }) => sum + count * factors[unit], 0);
          expect(parse(text)).toBe(sumMs);
        },
      ),
    );
  });

  it("answers any text with a whole number in bounds or a ValidationError", () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[0-9. a-z]{0,30}$/));
    fc.assert(
      fc.property(fc.oneof(text, fc.double()), (given) => {
        try {
          const ms = parse(given);
          expect(Number.isInteger(ms) && ms >= 0 && ms <= 365 * dayMs).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(ValidationError);
        }
      }),
    );
  });
});
