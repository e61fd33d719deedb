import { endures } from "./fuzz.js";
import { memoryStore } from "./server.js";

endures(async (scope) => memoryStore(scope), 400);
