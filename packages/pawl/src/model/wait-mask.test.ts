import { describe, expect, it } from "vitest";
import { waitMaskOf } from "./wait-mask.js";

/** Compares masks as the database does: bitwise on 64-bit integers. */
const meets = (a: number, b: number): boolean => (BigInt(a) & BigInt(b)) !== 0n;

describe("waitMaskOf", () => {
  it("holds every awaited type, however many", () => {
    const types = Array.from({ length: 500 }, (_, i) => `type-${i}`);
    const mask = waitMaskOf(types);
    expect(Number.isSafeInteger(mask)).toBe(true);
    for (const type of types) expect(meets(mask, waitMaskOf([type]))).toBe(true);
  });

  it("is empty for no type, and the same for a repeated one", () => {
    expect(waitMaskOf([])).toBe(0);
    expect(waitMaskOf(["a", "a"])).toBe(waitMaskOf(["a"]));
  });

  it("distinguishes most types", () => {
    const bits = new Set(Array.from({ length: 48 }, (_, i) => waitMaskOf([`type-${i}`])));
    expect(bits.size).toBeGreaterThan(20);
  });
});
