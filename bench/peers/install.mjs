// @ts-check
// Installs the peers into bench/node_modules when one is asked for. They are never a part of the product.
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { run } from "../../scripts/servers/process.mjs";

const HOME = fileURLToPath(new URL("../", import.meta.url));
const STAMP = path.join(HOME, "node_modules", ".pawl-bench");
const NODE_22 = "22.20.0";

export function installPeers() {
  const wanted = readFileSync(path.join(HOME, "package-lock.json"), "utf8");
  if (existsSync(STAMP) && readFileSync(STAMP, "utf8") === wanted) return;
  console.error("Installing the peers into bench/node_modules (250 MB)");
  const npm = process.env["npm_execpath"];
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"];
  const [program, before] = npm === undefined ? ["npm", []] : [process.execPath, [npm]];
  const { status } = spawnSync(program, [...before, ...args], { cwd: HOME, stdio: "inherit" });
  if (status !== 0) throw new Error("the peers could not be installed");
  writeFileSync(STAMP, wanted);
}

/** @returns {Promise<string>} where a Node 22 is: this one, or one fetched from npm */
export async function node22() {
  if (Number(process.versions.node.split(".")[0]) >= 22) return process.execPath;
  const script = fileURLToPath(new URL("../../scripts/servers/runtime.mjs", import.meta.url));
  return (await run([process.execPath, script, "node", NODE_22])).trim();
}

/** @param {string} name */
export function versionOf(name) {
  // Packages that the product's own tests use, too, are installed for all.
  const file = [HOME, path.dirname(HOME)]
    .map((home) => path.join(home, "node_modules", name, "package.json"))
    .find((candidate) => existsSync(candidate));
  if (file === undefined) throw new Error(`${name} is not installed`);
  const { version } = JSON.parse(readFileSync(file, "utf8"));
  return `${name} ${version}`;
}
