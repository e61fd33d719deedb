import { describe, expect, it } from "vitest";
import { idMaker } from "./ids.js";
import type { Random } from "./seams.js";

const zeros: Random = { next: () => 0, bytes: (target) => void target.fill(0) };
const ones: Random = { next: () => 0, bytes: (target) => void target.fill(255) };

describe("idMaker", () => {
  it("makes 22 characters that are safe in a URL", () => {
    const id = idMaker({ clock: { now: () => 1_700_000_000_000 }, random: zeros })();
    expect(id).toMatch(/^[\w-]{22}$/);
  });

  it("orders ids by time, as text", () => {
    let now = 1_700_000_000_000;
    const newId = idMaker({ clock: { now: () => now }, random: ones });
    const before = newId();
    now += 1;
    expect(newId() > before).toBe(true);
  });

  it("increases within a millisecond and when the clock steps back, even past a carry", () => {
    let now = 1_700_000_000_000;
    const newId = idMaker({ clock: { now: () => now }, random: ones });
    const ids = Array.from({ length: 200 }, (_, i) => {
      if (i === 100) now -= 5_000;
      return newId();
    });
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(200);
  });
});
