// @ts-check
// Prints where a JavaScript runtime is, fetched from npm if need be: node scripts/servers/runtime.mjs node 22.20.0
import path from "node:path";
import { cached } from "./cache.mjs";
import { run } from "./process.mjs";

const [name = "", version = ""] = process.argv.slice(2);
const root = await cached(`${name}-${version}-${process.platform}-${process.arch}`, async (dir) => {
  console.error(`Fetching ${name} ${version} from npm`);
  const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"];
  await run(["npm", "install", "--prefix", dir, ...flags, `${name}@${version}`]);
});
console.log(path.join(root, "node_modules", ".bin", name));
