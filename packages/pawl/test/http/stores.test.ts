import { describe } from "vitest";
import { database } from "../support/database.js";
import { servers } from "../support/servers.js";
import { endures } from "./fuzz.js";
import { routesWork, type OpenStore } from "./routes.js";

describe.each(servers)("%s", (kind) => {
  const openStore: OpenStore = async (scope) => (await database(scope, kind)).store();
  routesWork(openStore);
  endures(openStore, 150);
});
