import { describe, expect, test } from "vitest";
import { cappedBackoff } from "../authoring/presets.js";
import { retryDelayMs } from "./retry.js";
import { stepPolicies } from "./step-config.js";

const YEAR_MS = 365 * 86_400_000;

function delays(retries: object, chance: number): (number | null)[] {
  const policy = stepPolicies(undefined, YEAR_MS).of("s", { retries });
  const random = { next: () => chance, bytes: () => {} };
  return Array.from({ length: 11 }, (_, n) =>
    retryDelayMs(new Error("no"), n + 1, policy, { random, now: 0 }),
  );
}

describe("retry delays", () => {
  test("of the capped preset start at 2 s and double, plus 1 to 3 s of jitter, up to 300 s, ten times", () => {
    const seconds = [2, 4, 8, 16, 32, 64, 128, 256, 300, 300];
    const capped = (add: number): (number | null)[] => [
      ...seconds.map((delay) => Math.min(300, delay + add) * 1_000),
      null,
    ];
    expect(delays(cappedBackoff, 0)).toEqual(capped(1));
    expect(delays(cappedBackoff, 1)).toEqual(capped(3));
  });

  test("move both ways by a share of jitter, but never beyond maxDelay", () => {
    const given = { limit: 1, delay: 1_000, backoff: "constant", jitter: 0.5, maxDelay: 1_200 };
    expect(delays(given, 0)[0]).toBe(500);
    expect(delays(given, 0.5)[0]).toBe(1_000);
    expect(delays(given, 1)[0]).toBe(1_200);
  });

  test("of zero stay zero however many attempts, and a small one grows to its limit", () => {
    const policy = stepPolicies(undefined, YEAR_MS).of("s", {
      retries: { limit: Infinity, delay: 0 },
    });
    const slow = stepPolicies(undefined, YEAR_MS).of("s", {
      retries: { limit: Infinity, delay: 1 },
    });
    const world = { random: { next: () => 0.5, bytes: () => {} }, now: 0 };
    for (const attempt of [1, 1_025, 1_000_000]) {
      expect(retryDelayMs(new Error("no"), attempt, policy, world)).toBe(0);
    }
    expect(retryDelayMs(new Error("no"), 1_025, slow, world)).toBe(YEAR_MS);
  });

  test("refuse keys that a config does not have, by name", () => {
    const policies = stepPolicies(undefined, YEAR_MS);
    const refused = (config: object): void => void policies.of("pay", config);
    expect(() => refused({ timeOut: 5 })).toThrow('config of step "pay": unknown option "timeOut"');
    expect(() => refused({ retries: { limits: 0 } })).toThrow(
      'retries of step "pay": unknown option "limits"',
    );
  });

  test("do not depend on chance without jitter", () => {
    expect(delays({ limit: 5, delay: 1_000 }, 0)).toEqual(delays({ limit: 5, delay: 1_000 }, 1));
  });
});
