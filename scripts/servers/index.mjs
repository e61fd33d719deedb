// @ts-check
// Throwaway database servers for the tests: found or fetched, started on free ports with their data
// in the temporary folder, gone with the process that started them.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { mariadb, mysql } from "./mysql.mjs";
import { postgres } from "./postgres.mjs";
import { onFreePort, removeDir, serve, throwawayDir } from "./process.mjs";

/**
 * @typedef {object} ServerKind
 * @property {string} title
 * @property {string} advice how to get one, when it can be neither found nor fetched
 * @property {RegExp} ready what its log says when it accepts connections
 * @property {NodeJS.Signals} crashSignal ends it without a clean shutdown
 * @property {(port: number) => string} url
 * @property {(log: Log) => Promise<Program>} find
 *
 * @typedef {object} Program
 * @property {(dir: string) => Promise<void>} init makes the first data
 * @property {(dir: string, port: number, settings: Record<string, string>) => string[]} command
 *
 * @typedef {object} Server
 * @property {string} url
 * @property {() => Promise<void>} restart as after a power cut, on the same port and data
 * @property {() => Promise<void>} stop
 *
 * @typedef {(line: string) => void} Log
 * @typedef {keyof typeof KINDS} Name
 */

const KINDS = { postgres, mariadb, mysql };

export const STORES = /** @type {const} */ (["sqlite", "postgres", "mariadb", "mysql"]);

/** @param {string} name */
const urlVariable = (name) => `PAWL_TEST_${name.toUpperCase()}_URL`;

/** @returns {string[]} the stores asked for */
function selectedStores() {
  const list = process.env["PAWL_TEST_STORES"]?.split(",").map((name) => name.trim());
  const unknown = list?.find((name) => !STORES.some((store) => store === name));
  if (unknown !== undefined) {
    throw new Error(`PAWL_TEST_STORES: ${unknown} is none of ${STORES.join(", ")}`);
  }
  return list ?? [...STORES];
}

/**
 * Starts the servers that `stores` needs and that no environment variable names.
 * @param {{ stores?: string[], settings?: Record<string, string>, log?: Log }} [options] settings: of PostgreSQL
 * @returns {Promise<{
 *   urls: Partial<Record<Name, string>>,
 *   env: Record<string, string>,
 *   stop: () => Promise<void>
 * }>} env: how the tests are told (also where to restart a server, see `control`)
 */
export async function startServers({
  stores = selectedStores(),
  settings = {},
  log = console.error,
} = {}) {
  /** @type {Map<string, Server>} */
  const started = new Map();
  const stop = async () => {
    await Promise.all([...started.values()].map((server) => server.stop()));
  };
  /** @type {Partial<Record<Name, string>>} */
  const urls = {};
  const names = /** @type {Name[]} */ (Object.keys(KINDS)).filter((name) => stores.includes(name));
  const starts = names.map(async (name) => {
    const given = process.env[urlVariable(name)];
    if (!given) started.set(name, await startServer(name, log, settings));
    urls[name] = given ?? started.get(name)?.url ?? "";
  });
  const failures = (await Promise.allSettled(starts)).filter(
    (start) => start.status === "rejected",
  );
  if (failures.length > 0) {
    await stop();
    throw new Error(failures.map(({ reason }) => reason.message).join("\n\n"));
  }

  /** @type {Record<string, string>} */
  const env = { PAWL_TEST_STORES: stores.join(",") };
  for (const name of names) env[urlVariable(name)] = urls[name] ?? "";
  if (started.size === 0) return { urls, env, stop };

  const { url, close } = await control(started, log);
  return {
    urls,
    env: { ...env, PAWL_TEST_CONTROL_URL: url },
    stop: async () => {
      close();
      await stop();
    },
  };
}

/**
 * @param {Name} name
 * @param {Log} log
 * @param {Record<string, string>} [settings]
 * @returns {Promise<Server>}
 */
async function startServer(name, log, settings = {}) {
  const kind = KINDS[name];
  try {
    return await launch(name, kind, await kind.find(log), settings);
  } catch (error) {
    const fewer = STORES.filter((store) => store !== name).join(",");
    throw new Error(
      `No ${kind.title} for the tests: ${/** @type {Error} */ (error).message}\n` +
        `To go on, ${kind.advice}, or name a server in ${urlVariable(name)}, ` +
        `or do without: PAWL_TEST_STORES=${fewer}`,
      { cause: error },
    );
  }
}

/**
 * @param {string} name
 * @param {ServerKind} kind
 * @param {Program} program
 * @param {Record<string, string>} settings
 * @returns {Promise<Server>}
 */
async function launch(name, { ready, crashSignal, url }, program, settings) {
  const dir = throwawayDir(name);
  /** @type {import("./process.mjs").Child | undefined} */
  let child;
  /** @param {number} port */
  const start = async (port) => {
    child = await serve(program.command(dir, port, settings), { dir, ready, crashSignal });
  };
  const crash = async () => {
    if (!child) return;
    const { kill, exited } = child;
    kill(crashSignal);
    await Promise.race([exited, sleep(3_000, undefined, { ref: false })]);
    kill("SIGKILL");
    await exited;
  };
  const stop = async () => {
    await crash();
    removeDir(dir);
  };
  try {
    await program.init(dir);
    const port = await onFreePort(start);
    const restart = async () => {
      await crash();
      await start(port);
    };
    return { url: url(port), restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Lets tests in other processes crash servers. Each request answers when it is done:
 *
 * - `POST <url>/start/postgres` starts another server, for a test that must not disturb others,
 *   and answers `{ id, url }`. The shared one's id is its name.
 * - `POST <url>/restart/<id>` crashes it and starts it again with the same port and data.
 * - `POST <url>/stop/<id>`
 *
 * @param {Map<string, Server>} servers
 * @param {Log} log
 */
async function control(servers, log) {
  // The token cannot be guessed, because any web page may post to a loopback port.
  const token = randomUUID();

  /** @param {string} pathname */
  const answer = async (pathname) => {
    const [, given, verb, id = ""] = pathname.split("/");
    if (given !== token) return undefined;
    if (verb === "start" && Object.hasOwn(KINDS, id)) {
      const server = await startServer(/** @type {Name} */ (id), log);
      const name = `${id}-${randomUUID()}`;
      servers.set(name, server);
      return { id: name, url: server.url };
    }
    const server = servers.get(id);
    if (server && verb === "restart") {
      await server.restart();
      return { id, url: server.url };
    }
    if (server && verb === "stop") {
      servers.delete(id);
      await server.stop();
      return {};
    }
    return undefined;
  };

  const http = createServer((request, response) => {
    const path = request.method === "POST" ? (request.url ?? "") : "";
    answer(path).then(
      (body) => response.writeHead(body ? 200 : 404).end(JSON.stringify(body ?? {})),
      (error) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise((resolve) => http.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (http.address());
  return {
    url: `http://127.0.0.1:${port}/${token}`,
    close: () => {
      http.close();
      http.closeAllConnections();
    },
  };
}
