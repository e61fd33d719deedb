// @ts-check
// MariaDB and MySQL: one family, two ways to get a server and to make its first data.
import { existsSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import path from "node:path";
import { debianProgram } from "./debian.mjs";
import { run } from "./process.mjs";

/** @typedef {{ command: string[], usr: string }} Server usr: the tree it was installed in */

// Passwords would only slow each connection down: the servers listen on loopback and are thrown away after
// the run.
const FIRST_SQL = `
CREATE DATABASE IF NOT EXISTS pawl;
CREATE USER IF NOT EXISTS 'pawl'@'%';
GRANT ALL ON *.* TO 'pawl'@'%' WITH GRANT OPTION;
`;

const common = {
  ready: /ready for connections/,
  crashSignal: /** @type {const} */ ("SIGKILL"),
  /** @param {number} port */
  url: (port) => `mysql://pawl@127.0.0.1:${port}/pawl`,
};

/**
 * @param {Server} server
 * @param {string} dir
 */
const program = ({ command, usr }, dir) => [
  ...command,
  "--no-defaults",
  `--basedir=${usr}`,
  `--datadir=${dir}/data`,
  // A starting server deletes the temporary tables in its tmpdir, even those of another server.
  `--tmpdir=${dir}`,
  `--lc-messages-dir=${path.resolve(shared(usr, "english/errmsg.sys"), "../..")}`,
];

/**
 * @param {string} dir
 * @param {number} port
 */
const settings = (dir, port) => [
  "--bind-address=127.0.0.1",
  `--port=${port}`,
  `--socket=${dir}/socket`,
  `--pid-file=${dir}/pid`,
  `--init-file=${dir}/first.sql`,
  "--skip-name-resolve",
  "--skip-log-bin",
  "--character-set-server=utf8mb4",
  "--max-connections=500",
  "--innodb-buffer-pool-size=256M",
  "--innodb-flush-log-at-trx-commit=1",
];

/** @type {import("./index.mjs").ServerKind} */
export const mariadb = {
  ...common,
  title: "MariaDB",
  advice: "install mariadb-server",

  async find(log) {
    const server =
      (await installed("mariadbd", true)) ??
      (await unpacked("usr/sbin/mariadbd", { package: "mariadb-server-core", log }));
    return {
      async init(dir) {
        // This does what mariadb-install-db does, without the shell script that expects a fixed place.
        const parts = ["system_tables", "performance_tables", "system_tables_data"];
        const tables = parts.map((part) =>
          readFileSync(shared(server.usr, `mariadb_${part}.sql`, `mysql_${part}.sql`), "utf8"),
        );
        // The server reads one statement per line.
        const first = ["CREATE DATABASE mysql;", "USE mysql;", "SET @auth_root_socket = NULL;"];
        const input = [...first, ...tables].join("\n");
        await run([...program(server, dir), "--bootstrap"], { dir, input });
        writeFileSync(path.join(dir, "first.sql"), FIRST_SQL);
      },
      command: (dir, port) => [...program(server, dir), ...settings(dir, port)],
    };
  },
};

/** @type {import("./index.mjs").ServerKind} */
export const mysql = {
  ...common,
  title: "MySQL",
  advice: "install mysql-server",

  async find(log) {
    const server =
      (await installed("mysqld", false)) ??
      (await unpacked("usr/sbin/mysqld", { package: "mysql-server-core", suite: "sid", log }));
    return {
      async init(dir) {
        await run([...program(server, dir), "--initialize-insecure"], { dir });
        writeFileSync(path.join(dir, "first.sql"), FIRST_SQL);
      },
      command: (dir, port) => [
        ...program(server, dir),
        ...settings(dir, port),
        "--secure-file-priv=NULL",
        "--mysqlx=OFF",
      ],
    };
  },
};

/**
 * @param {string} name
 * @param {boolean} isMariaDb MariaDB installs a `mysqld` too
 * @returns {Promise<Server | undefined>}
 */
async function installed(name, isMariaDb) {
  const dirs = (process.env["PATH"] ?? "").split(path.delimiter).filter(Boolean);
  for (const dir of [...dirs, "/usr/sbin", "/usr/libexec"]) {
    const file = path.join(dir, name);
    if (!existsSync(file)) continue;
    const version = await run([file, "--no-defaults", "--version"]);
    if (version.includes("MariaDB") !== isMariaDb) continue;
    return { command: [file], usr: path.resolve(realpathSync(file), "../..") };
  }
  return undefined;
}

/**
 * @param {string} file
 * @param {Parameters<typeof debianProgram>[0]} options
 * @returns {Promise<Server>}
 */
async function unpacked(file, options) {
  const { usr, command } = await debianProgram(options);
  return { command: command(file), usr };
}

/**
 * @param {string} usr
 * @param {string[]} names of the same file in different versions
 */
function shared(usr, ...names) {
  const dirs = ["share/mysql", "share/mariadb", "share/mysql-8.0", "share"];
  const files = dirs.flatMap((dir) => names.map((name) => path.join(usr, dir, name)));
  const found = files.find((file) => existsSync(file));
  if (!found) throw new Error(`${names.join(" or ")} is not under ${usr}/share`);
  return found;
}
