// @ts-check
// Prints where a Node of another version is, fetched from npm if need be: node scripts/servers/node.mjs 22.20.0
import path from "node:path";
import { cached } from "./cache.mjs";
import { run } from "./process.mjs";

const [version = ""] = process.argv.slice(2);
const root = await cached(`node-${version}-${process.platform}-${process.arch}`, async (dir) => {
  console.error(`Fetching Node ${version} from npm`);
  const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund"];
  await run(["npm", "install", "--prefix", dir, ...flags, `node@${version}`]);
});
console.log(path.join(root, "node_modules", "node", "bin", "node"));
