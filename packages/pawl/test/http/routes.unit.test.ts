import { routesWork } from "./routes.js";
import { memoryStore } from "./server.js";

routesWork(async (scope) => memoryStore(scope));
