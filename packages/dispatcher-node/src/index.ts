export { openSqlite, type OpenSqliteOptions } from "./open-sqlite.js";
