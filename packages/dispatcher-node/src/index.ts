export { openSqlite, type OpenSqliteOptions } from "./open-sqlite.js";
export {
  startRunner,
  type RunningRunner,
  type StartRunnerOptions,
  type StopOptions,
} from "./start-runner.js";
