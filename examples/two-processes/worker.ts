// Runs workflows. Start as many of these as you like, on as many machines: each takes what is due.
import { drainOnSignals, startRunner } from "@pawl/dispatcher-node";
import { openPawl } from "./workflows.js";

const pawl = openPawl();
await pawl.migrate();
const runner = startRunner(pawl);
drainOnSignals([runner]);
console.log("Worker ready");
