import { readdirSync, readFileSync } from "node:fs";
import { test } from "vitest";
import { scenarioOf, type Plan } from "./scenarios.js";
import { simulate } from "./simulate.js";

/* Each plan fails without the part of the engine that it guards. As data, plans survive changes of the dice. */

type Regression = { readonly guards: string; readonly plan: Plan };

const folder = new URL("regressions/", import.meta.url);
for (const file of readdirSync(folder)) {
  const { guards, plan } = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Regression;
  test(guards, async () => void (await simulate(scenarioOf(plan))));
}
