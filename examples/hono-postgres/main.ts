import { drainOnSignals, serve, startRunner } from "@pawl/dispatcher-node";
import pg from "pg";
import { createShop } from "./app.js";

const pool = new pg.Pool({ connectionString: process.env["DATABASE_URL"] });
const { app, pawl, migrate } = createShop(pool);
await migrate();
const runner = startRunner(pawl);
const server = await serve(app, { port: Number(process.env["PORT"] ?? 3000) });
drainOnSignals([server, runner]);
console.log(`The shop is open at ${server.url}`);
