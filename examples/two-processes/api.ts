// Takes requests and runs nothing: every one of them is answered right after its commit.
import { drainOnSignals, serve } from "@pawl/dispatcher-node";
import { openPawl } from "./workflows.js";

const pawl = openPawl();
await pawl.migrate();
const server = await serve(pawl, { port: Number(process.env["PORT"] ?? 3000) });
drainOnSignals([server]);
console.log(`API at ${server.url}/api`);
