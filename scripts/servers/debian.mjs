// @ts-check
// Programs from Debian packages of any suite, without installing anything: the package and all it
// depends on, libc included, are unpacked into one tree and run through that tree's own loader.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { cached } from "./cache.mjs";
import { run } from "./process.mjs";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * @param {{ package: string, suite?: string, log: (line: string) => void }} options
 *   suite: another than the machine's own
 * @returns {Promise<{ usr: string, command: (binary: string) => string[] }>}
 */
export async function debianProgram(options) {
  const own = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1];
  const suite = options.suite ?? own;
  if (!own || !suite || !existsSync(KEYRING)) throw new Error("this is not a Debian system");

  const root = await cached(`${options.package}-${suite}-${process.arch}`, async (dir) => {
    options.log(`Fetching ${options.package} from Debian ${suite}`);
    const apt = path.join(dir, "apt");
    for (const folder of ["lists/partial", "cache/archives/partial"]) {
      mkdirSync(path.join(apt, folder), { recursive: true });
    }
    // An empty status file makes apt see an empty machine, so it fetches every dependency.
    writeFileSync(path.join(apt, "status"), "");
    const source = `deb [signed-by=${KEYRING}] ${await mirror(own)} ${suite} main\n`;
    writeFileSync(path.join(apt, "sources.list"), source);
    const settings = {
      "Dir::State": apt,
      "Dir::State::lists": path.join(apt, "lists"),
      "Dir::State::status": path.join(apt, "status"),
      "Dir::Cache": path.join(apt, "cache"),
      "Dir::Etc::sourcelist": path.join(apt, "sources.list"),
      "Dir::Etc::sourceparts": "/dev/null",
      "Dir::Etc::preferences": "/dev/null",
      "Dir::Etc::preferencesparts": "/dev/null",
      "Acquire::Languages": "none",
      "APT::Install-Recommends": "false",
      // The user of apt could not write here.
      "APT::Sandbox::User": "root",
    };
    const flags = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
    await run(["apt-get", ...flags, "-qq", "update"]);
    await run(["apt-get", ...flags, "-qq", "--download-only", "install", options.package]);

    const archives = path.join(apt, "cache", "archives");
    for (const deb of readdirSync(archives).filter((file) => file.endsWith(".deb"))) {
      await run(["dpkg-deb", "--extract", path.join(archives, deb), dir]);
    }
    rmSync(apt, { recursive: true });
  });

  const folders = ["lib", "lib64", "usr/lib", "usr/lib64"].map((dir) => path.join(root, dir));
  const nested = folders.flatMap((dir) => list(dir, /-linux-gnu/));
  const loader = [...folders, ...nested].flatMap((dir) => list(dir, /^ld-linux.*\.so/))[0];
  if (!loader) throw new Error(`${root} has no dynamic loader; delete it and try again`);
  return {
    usr: path.join(root, "usr"),
    command: (binary) => [loader, "--library-path", nested.join(":"), path.join(root, binary)],
  };
}

/**
 * @param {string} dir
 * @param {RegExp} pattern
 */
function list(dir, pattern) {
  const names = existsSync(dir) ? readdirSync(dir) : [];
  return names.filter((name) => pattern.test(name)).map((name) => path.join(dir, name));
}

/**
 * The mirror this machine uses, whatever form its sources have.
 * @param {string} suite
 */
async function mirror(suite) {
  const uris = await run(["apt-get", "update", "--print-uris"]);
  const found = new RegExp(`'(\\S+)/dists/${suite}/InRelease'`).exec(uris)?.[1];
  if (!found) throw new Error(`apt has no source for ${suite}`);
  return found;
}
