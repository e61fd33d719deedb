import { describe } from "vitest";
import { database } from "../support/database.js";
import { servers } from "../support/servers.js";
import { routesWork } from "./routes.js";

describe.each(servers)("%s", (kind) => {
  routesWork(async (scope) => (await database(scope, kind)).store());
});
