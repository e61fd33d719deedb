// @ts-check
// A pgbouncer in transaction mode before a PostgreSQL server, until its input ends. Its first line is the URL:
//   node scripts/servers/pgbouncer.mjs postgres://… [startup parameters to ignore]
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { debianProgram } from "./debian.mjs";
import { onFreePort, removeDir, run, serve, throwawayDir } from "./process.mjs";

const ADVICE = "install pgbouncer, or do without: PAWL_TEST_PGBOUNCER=no";

/**
 * @param {{ server: string, ignored?: string }} options
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startPgbouncer({ server, ignored = "" }) {
  const command = await find();
  // pgbouncer's own prepared statements hide from clients that theirs do not last.
  const [major = 0, minor = 0] = (/(\d+)\.(\d+)/.exec(await run([...command, "--version"])) ?? [])
    .slice(1)
    .map(Number);
  const prepares = major > 1 || minor >= 21;
  const target = new URL(server);
  const dir = throwawayDir("pgbouncer");
  /** @type {import("./process.mjs").Child | undefined} */
  let child;
  const stop = async () => {
    child?.kill("SIGKILL");
    await child?.exited;
    removeDir(dir);
  };
  try {
    const port = await onFreePort(async (free) => {
      const settings = {
        listen_addr: "127.0.0.1",
        listen_port: free,
        unix_socket_dir: "",
        auth_type: "trust",
        auth_file: path.join(dir, "users"),
        pool_mode: "transaction",
        // There are few connections, so that clients take turns on the same ones.
        default_pool_size: 3,
        max_client_conn: 200,
        ignore_startup_parameters: ignored,
        ...(prepares ? { max_prepared_statements: 0 } : {}),
      };
      const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
      const databases = `* = host=${target.hostname} port=${target.port}`;
      writeFileSync(path.join(dir, "users"), `"${target.username}" ""\n`);
      writeFileSync(
        path.join(dir, "ini"),
        ["[databases]", databases, "[pgbouncer]", ...lines, ""].join("\n"),
      );
      child = await serve([...command, path.join(dir, "ini")], {
        dir,
        ready: /process up/,
        crashSignal: "SIGKILL",
      });
    });
    return { url: Object.assign(new URL(server), { port: String(port) }).href, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** @returns {Promise<string[]>} */
async function find() {
  const dirs = (process.env["PATH"] ?? "").split(path.delimiter).filter(Boolean);
  const installed = [...dirs, "/usr/sbin"]
    .map((dir) => path.join(dir, "pgbouncer"))
    .find((file) => existsSync(file));
  if (installed) return [installed];
  try {
    const { command } = await debianProgram({ package: "pgbouncer", log: console.error });
    return command("usr/sbin/pgbouncer");
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    throw new Error(`No pgbouncer for the tests: ${message}\nTo go on, ${ADVICE}`, {
      cause: error,
    });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , server = "", ignored = ""] = process.argv;
  const { url, stop } = await startPgbouncer({ server, ignored });
  console.log(url);
  await once(process.stdin.resume(), "end");
  await stop();
}
