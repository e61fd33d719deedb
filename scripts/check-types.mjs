// @ts-check
// Compiles the type tests as users do: against the built declarations, with each TypeScript we support.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const compilers = ["typescript-5.4", "typescript-5.9", "typescript"];
// The programs are apart from each other, because what one of them registers, every file of it sees.
const programs = ["unregistered", "registered", "docs"];

/**
 * @param {string} compiler
 * @param {string} program
 * @returns {Promise<boolean>}
 */
function compile(compiler, program) {
  const tsc = path.join(root, "node_modules", compiler, "bin", "tsc");
  const project = path.join(root, "packages", "pawl", "test-types", program);
  const child = spawn(process.execPath, [tsc, "-p", project], { cwd: root });
  let output = "";
  child.stdout.on("data", (data) => (output += data));
  child.stderr.on("data", (data) => (output += data));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => {
      if (code !== 0) console.error(`${compiler}, ${program}:\n${output}`);
      resolve(code === 0);
    });
  });
}

const jobs = compilers.flatMap((compiler) =>
  programs.map((program) => () => compile(compiler, program)),
);
const results = await Promise.all(
  [1, 2].map(async () => {
    let ok = true;
    for (let job = jobs.shift(); job !== undefined; job = jobs.shift()) ok = (await job()) && ok;
    return ok;
  }),
);
if (results.includes(false)) process.exit(1);
