export { drainOnSignals, type DrainOptions } from "./drain-on-signals.js";
export { openSqlite, type OpenSqliteOptions } from "./open-sqlite.js";
export {
  serve,
  type CloseOptions,
  type RunningServer,
  type Served,
  type ServeOptions,
} from "./serve.js";
export {
  startRunner,
  type RunningRunner,
  type StartRunnerOptions,
  type StopOptions,
} from "./start-runner.js";
export { wakeOverHttp, type WakeOverHttpOptions } from "./wake-over-http.js";
