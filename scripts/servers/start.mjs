// @ts-check
// Starts the test servers and keeps them until Ctrl-C, so that test runs need not start their own:
//   node scripts/servers/start.mjs > servers.env & … . ./servers.env; npx vitest --project stores
import { once } from "node:events";
import { startServers } from "./index.mjs";

const { env, stop } = await startServers();
for (const [name, value] of Object.entries(env)) console.log(`export ${name}='${value}'`);

const forever = setInterval(() => {}, 3_600_000);
await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
clearInterval(forever);
await stop();
