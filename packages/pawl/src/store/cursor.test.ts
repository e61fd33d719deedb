import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { WorkflowError } from "../model/errors.js";
import { decodeCursor, encodeCursor } from "./cursor.js";

const codeOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof WorkflowError) return error.code;
    throw error;
  }
  return "nothing thrown";
};

describe("cursors", () => {
  it("round-trip any query and position", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.maxSafeInteger(),
        fc.string(),
        (query, at, iid) => {
          const cursor = encodeCursor(query, [at, iid]);
          if (cursor.length > 1024) return;
          expect(cursor).toMatch(/^[\w-]*$/);
          expect(decodeCursor(cursor, query, ["integer", "string"])).toEqual([at, iid]);
        },
      ),
    );
  });

  it("are refused for another query", () => {
    const cursor = encodeCursor("list a", [1, "x"]);
    expect(codeOf(() => decodeCursor(cursor, "list b", ["integer", "string"]))).toBe(
      "INVALID_CURSOR",
    );
  });

  it("are refused when their position does not fit", () => {
    for (const position of [[1], ["1", "x"], [1.5, "x"], [1, "x", "y"]]) {
      const cursor = encodeCursor("q", position);
      expect(codeOf(() => decodeCursor(cursor, "q", ["integer", "string"]))).toBe("INVALID_CURSOR");
    }
  });

  it("throw INVALID_CURSOR for any garbage", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 2_000 }), (garbage) => {
        expect(codeOf(() => decodeCursor(garbage, "q", ["integer"]))).toBe("INVALID_CURSOR");
      }),
    );
  });
});
