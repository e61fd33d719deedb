import { defineConfig } from "vitest/config";

// Tests run on the sources: a workspace package resolves to its src/, no build needed.
const conditions = ["pawl-source", "module", "node", "development|production"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    environment: "node",
    // Native SQLite drivers and process-level state (time zones, signals) want real processes.
    pool: "forks",
    maxWorkers: 2,
    // Nothing here is timed: a test that takes long on a busy machine has not failed.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          // They share nothing but modules, which take longer to load than most tests: 32 s of CPU instead of 55.
          isolate: false,
          include: [
            "packages/*/src/**/*.test.ts",
            "packages/*/test/**/*.unit.test.ts",
            "examples/**/*.unit.test.ts",
            "scripts/**/*.test.mjs",
          ],
        },
      },
      {
        extends: true,
        test: {
          name: "simulation",
          include: ["packages/*/test/sim/**/*.test.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "stores",
          include: ["packages/*/test/**/*.test.ts", "examples/**/*.test.ts"],
          exclude: ["**/*.unit.test.ts", "packages/*/test/sim/**"],
          globalSetup: ["scripts/servers/vitest.mjs", "scripts/build-packages.mjs"],
        },
      },
    ],
  },
});
