import { readdirSync, readFileSync } from "node:fs";
import { test } from "vitest";
import { scenarioOf, type Plan } from "./scenarios.js";
import { simulate } from "./simulate.js";

/* Plans that fail when what they guard is taken out of the engine. As data, so that changes of the dice leave them alone. */

type Regression = { readonly guards: string; readonly plan: Plan };

const folder = new URL("regressions/", import.meta.url);
for (const file of readdirSync(folder)) {
  const { guards, plan } = JSON.parse(readFileSync(new URL(file, folder), "utf8")) as Regression;
  test(guards, async () => void (await simulate(scenarioOf(plan))));
}
