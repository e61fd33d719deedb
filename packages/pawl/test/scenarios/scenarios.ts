import { afterAll, describe } from "vitest";
import type { StoreFixture } from "../../src/testing/conformance/index.js";
import { answers } from "./answers.js";
import { authoring } from "./authoring.js";
import { beside } from "./beside.js";
import { budgets } from "./budgets.js";
import { children } from "./children.js";
import { control } from "./control.js";
import { divergence } from "./divergence.js";
import { hooks } from "./hooks.js";
import { nested } from "./nested.js";
import { poison } from "./poison.js";
import { races } from "./races.js";
import { recovery } from "./recovery.js";
import { retries } from "./retries.js";
import { runner } from "./runner.js";
import { served } from "./serving.js";
import { steps } from "./steps.js";
import { stored } from "./stored.js";
import { timeouts } from "./timeouts.js";
import { waits } from "./waits.js";

const topics = {
  authoring,
  children,
  steps,
  stored,
  retries,
  timeouts,
  waits,
  beside,
  races,
  nested,
  control,
  recovery,
  answers,
  runner,
  poison,
  divergence,
  hooks,
  budgets,
  served,
};

/** The promises of the engine, through its public API with a real runner, on one store. */
export function scenarios(
  name: string,
  fixture: StoreFixture & { dispose?(): Promise<void> },
): void {
  describe(name, () => {
    afterAll(() => fixture.dispose?.());
    for (const define of Object.values(topics)) define(fixture);
  });
}
