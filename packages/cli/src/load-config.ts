import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";
import type { AnyPawl, ConfigContext, PawlConfig } from "./config.js";
import { Failure } from "./failure.js";

const names = ["pawl.config.ts", "pawl.config.mts", "pawl.config.js", "pawl.config.mjs"];

const template = `make one, pawl.config.ts, beside your package.json:

  import { defineConfig } from "@pawl/cli";
  import { openSqlite } from "@pawl/dispatcher-node";
  import { createWorkflows } from "pawl";
  import { sqliteStore } from "pawl/sqlite";
  import { OrderWorkflow } from "./src/order.js";

  export default defineConfig(({ logger }) =>
    createWorkflows({
      workflows: { ORDER: { name: "order", workflow: OrderWorkflow } },
      store: sqliteStore(openSqlite("pawl.db")),
      logger,
    }),
  );

or name one with --config, or a running API with --url`;

/** Finds the config of a command: the given one, or the nearest in this folder or above it. */
export function findConfig(given: string | undefined, cwd: string): string {
  if (given !== undefined) {
    const file = path.resolve(cwd, given);
    if (existsSync(file) && statSync(file).isFile()) return file;
    throw new Failure("usage", "CONFIG_NOT_FOUND", `there is no config file ${given}`, {
      hint: template,
    });
  }
  for (let folder = cwd; ; folder = path.dirname(folder)) {
    const found = names.map((name) => path.join(folder, name)).find((file) => existsSync(file));
    if (found !== undefined) return found;
    if (folder === path.dirname(folder)) break;
  }
  throw new Failure("usage", "CONFIG_NOT_FOUND", "no pawl.config.ts here or in a folder above", {
    hint: template,
  });
}

/**
 * Loads a config, which may be TypeScript, without a build. The process moves to its folder, so that a relative path in
 * it is the same wherever the command is called.
 */
export async function loadConfig(file: string, context: ConfigContext): Promise<PawlConfig> {
  process.chdir(path.dirname(file));
  try {
    const { createJiti } = await import("jiti");
    const jiti = createJiti(pathToFileURL(file).href, { interopDefault: false });
    const loaded = await jiti.import<Readonly<Record<string, unknown>>>(file);
    const exported: unknown = await loaded["default"];
    const made: unknown = typeof exported === "function" ? await exported(context) : exported;
    return configOf(made, path.basename(file));
  } catch (error) {
    if (error instanceof Failure) throw error;
    throw new Failure(
      "usage",
      "CONFIG_FAILED",
      `${path.basename(file)} failed: ${reasonOf(error)}`,
      {
        cause: error,
      },
    );
  }
}

/** Makes the failure of a config that awaits something which nothing is left to bring. */
export function configNeverLoaded(): Failure {
  return new Failure("usage", "CONFIG_FAILED", "the config never finished loading");
}

function configOf(made: unknown, file: string): PawlConfig {
  if (isPawl(made)) return { pawl: made };
  const pawl: unknown = typeof made === "object" && made !== null && Reflect.get(made, "pawl");
  if (isPawl(pawl)) return { ...(made as PawlConfig), pawl };
  throw new Failure(
    "usage",
    "CONFIG_INVALID",
    `the default export of ${file} must be what createWorkflows gives, or { pawl } with it, or a function that returns one of these`,
    { hint: "for instance: export default createWorkflows({ workflows, store })" },
  );
}

function isPawl(value: unknown): value is AnyPawl {
  if (typeof value !== "object" || value === null) return false;
  return ["migrate", "list", "history", "tick", "close", "options"].every((key) => key in value);
}

const FRAMES = 3;

/** Returns the message of an error, with the lines of the user's own code that led to it. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const frames = (error.stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line) && !/node:|node_modules/.test(line))
    .slice(0, FRAMES);
  const named = error.name === "Error" ? error.message : `${error.name}: ${error.message}`;
  return [named, ...frames.map((line) => `  ${line.trim()}`)].join("\n");
}
