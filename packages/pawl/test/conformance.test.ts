import { afterAll, describe, test } from "vitest";
import { storeConformanceByTheme, type StoreFixture } from "../src/testing/conformance/index.js";
import { mysqlFamily, postgres, sqliteFile, sqliteMemory } from "./fixtures.js";

// Far from the servers' zone and from UTC, with minutes: a time that went through it would not come back right.
process.env["TZ"] = "Asia/Kathmandu";

type Themes = keyof typeof storeConformanceByTheme;

/** Where sessions meet, and the server's default isolation could make a difference. */
const meetings: readonly Themes[] = [
  "create",
  "transactions",
  "claim",
  "events",
  "resend",
  "races",
];

const stores: Readonly<Record<string, () => void>> = {
  sqlite() {
    conforms("SQLite file", sqliteFile);
    conforms("SQLite in memory", sqliteMemory);
  },
  postgres() {
    const url = urlOf("POSTGRES");
    conforms("PostgreSQL", postgres(url));
    for (const isolation of ["REPEATABLE READ", "SERIALIZABLE"] as const) {
      conforms(`PostgreSQL at ${isolation}`, postgres(url, { isolation }), meetings);
    }
  },
  mariadb: () => mysqlConforms("MariaDB"),
  mysql: () => mysqlConforms("MySQL"),
};

/** REPEATABLE READ is what these servers come with. */
function mysqlConforms(name: string): void {
  const url = urlOf(name.toUpperCase());
  conforms(name, mysqlFamily(url));
  const readCommitted = mysqlFamily(url, { isolation: "READ COMMITTED" });
  conforms(`${name} at READ COMMITTED`, readCommitted, ["transactions", "races"]);
}

function conforms(
  name: string,
  fixture: StoreFixture & { dispose?(): Promise<void> },
  themes?: readonly Themes[],
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

function urlOf(server: string): string {
  const variable = `PAWL_TEST_${server}_URL`;
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} names no server, and PAWL_TEST_STORES asks for one`);
  return url;
}

const asked = (process.env["PAWL_TEST_STORES"] ?? Object.keys(stores).join(",")).split(",");
for (const store of asked.map((word) => word.trim())) {
  const define = stores[store];
  if (define === undefined) throw new Error(`PAWL_TEST_STORES: there is no store "${store}"`);
  define();
}
