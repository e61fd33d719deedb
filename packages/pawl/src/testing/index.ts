export { createHarness, type HarnessOptions } from "./create-harness.js";
export type {
  DoubleOptions,
  Harness,
  HarnessClock,
  IdleOptions,
  WaitOptions,
  WorkflowNameOf,
} from "./harness.js";
export { exportHistoryOf, type ExportedHistory } from "./export-history.js";
export { DivergenceError, type ReplayedStep } from "./divergence-error.js";
export { replay, type ReplayOptions, type ReplayResult } from "./replay.js";
export { VirtualTime } from "./virtual-time.js";

export { ManualClock } from "./clock.js";
export { storeConformance } from "./conformance/index.js";
export type {
  ConformanceCase,
  StoreFixture,
  TestDatabase,
  TestTransaction,
} from "./conformance/fixture.js";
