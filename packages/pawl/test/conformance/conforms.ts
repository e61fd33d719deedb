import { afterAll, describe, test } from "vitest";
import { storeConformanceByTheme, type StoreFixture } from "../../src/testing/conformance/index.js";

// Far from the servers' zone and from UTC, with minutes: a time that went through it would not come back right.
process.env["TZ"] = "Asia/Kathmandu";

type Theme = keyof typeof storeConformanceByTheme;

/** Where sessions meet, and the server's default isolation could make a difference. */
export const meetings: readonly Theme[] = [
  "create",
  "transactions",
  "claim",
  "reopen",
  "events",
  "resend",
  "hooks",
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

const stores = ["sqlite", "postgres", "mariadb", "mysql"] as const;
type StoreName = (typeof stores)[number];

/** Runs if this store was asked for; one file a store, so that they run side by side. */
export function ifAsked(store: StoreName, define: (url: string) => void): void {
  const asked = (process.env["PAWL_TEST_STORES"] ?? stores.join(",")).split(",");
  const unknown = asked.find((word) => !stores.some((known) => known === word.trim()));
  if (unknown !== undefined) throw new Error(`PAWL_TEST_STORES: there is no store "${unknown}"`);
  if (!asked.some((word) => word.trim() === store)) {
    test.skip(`${store} was not asked for`, () => {});
    return;
  }
  define(store === "sqlite" ? "" : urlOf(store));
}

function urlOf(store: StoreName): string {
  const variable = `PAWL_TEST_${store.toUpperCase()}_URL`;
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} names no server, and PAWL_TEST_STORES asks for one`);
  return url;
}
