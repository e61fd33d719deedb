export { ManualClock } from "./clock.js";
export { storeConformance } from "./conformance/index.js";
export type {
  ConformanceCase,
  StoreFixture,
  TestDatabase,
  TestTransaction,
} from "./conformance/fixture.js";
