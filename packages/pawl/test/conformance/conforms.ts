import { afterAll, describe, test } from "vitest";
import { storeConformanceByTheme, type StoreFixture } from "../../src/testing/conformance/index.js";
import { sharedServer, stores, type StoreName } from "../support/servers.js";

// This zone is far from the servers' zone and from UTC, and has minutes, so that a time that went through it
// would not come back right.
process.env["TZ"] = "Asia/Kathmandu";

type Theme = keyof typeof storeConformanceByTheme;

/** The themes in which sessions meet, so that the server's default isolation could make a difference. */
export const meetings: readonly Theme[] = [
  "create",
  "transactions",
  "claim",
  "reopen",
  "events",
  "resend",
  "hooks",
  "hook deliveries",
  "races",
];

export function conforms(
  name: string,
  fixture: StoreFixture & { dispose?(): Promise<void> },
  themes?: readonly Theme[],
): void {
  describe(name, () => {
    afterAll(() => fixture.dispose?.());
    for (const [theme, cases] of Object.entries(storeConformanceByTheme)) {
      if (themes !== undefined && !themes.includes(theme)) continue;
      describe(theme, () => {
        for (const each of cases) test(each.name, () => each.run(fixture));
      });
    }
  });
}

/**
 * Runs the tests if this store was asked for. Each store has a file of its own, so that they run in parallel.
 */
export function ifAsked(store: StoreName, define: (url: string) => void): void {
  if (stores.includes(store)) return define(store === "sqlite" ? "" : sharedServer(store));
  // A file must have a test. This one says why it has no other.
  test(`${store} was not asked for`, () => {});
}
