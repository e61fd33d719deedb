import { expect, test } from "vitest";
import { ValidationError } from "./errors.js";
import { checkOptions } from "./known-options.js";

const known = { name: true, run: true } as const;

test("known options pass unchanged", () => {
  const given = { name: "a", run: undefined };
  expect(checkOptions("it", given, known)).toBe(given);
  expect(checkOptions("it", {}, known)).toEqual({});
});

test.each([
  [{ name: "a", runs: 1 }, 'it: unknown option "runs"; the options are name, run'],
  [{ toString: 1 }, 'it: unknown option "toString"; the options are name, run'],
  [null as unknown as object, "it must be an object, got null"],
  [["name"], "it must be an object, got "],
])("%j is refused", (given, message) => {
  expect(() => checkOptions("it", given, known)).toThrow(ValidationError);
  expect(() => checkOptions("it", given, known)).toThrow(message);
});
