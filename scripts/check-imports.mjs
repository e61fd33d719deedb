// @ts-check
// Checks the architecture: which part may import which, and that the domain touches no runtime.
import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";
import { sourcesOf } from "./sources.mjs";

/**
 * The parts that each part of packages/pawl/src may import, besides itself. A part is a folder, or a file
 * directly in src/. `*` is every part but testing; `http/contract` is that one file. Types count
 * as well. Tests may import anything.
 * @type {Record<string, string[]>}
 */
const PARTS = {
  // The layers, lowest first.
  model: [],
  authoring: ["model"],
  store: ["model"],
  hooks: ["model", "store"],
  engine: ["model", "authoring", "store", "hooks"],
  instances: ["model", "authoring", "store", "hooks"],
  runner: ["model", "authoring", "store", "hooks", "engine", "instances"],
  http: ["model", "authoring", "store", "instances", "engine", "runner"],

  // Each knows one seam only.
  sql: ["model", "store"],
  client: [
    "model",
    "authoring",
    "runtime",
    "http/answer-schemas",
    "http/contract",
    "instances/history",
    "instances/list",
    "instances/methods",
    "instances/operations",
    "instances/wire-forms",
  ],
  auth: ["model", "authoring", "runtime"],

  // The files at the top, where the parts meet.
  runtime: ["model"],
  assemble: ["*"],
  workflows: ["*"],
  index: ["*"],
  sqlite: ["*"],
  postgres: ["*"],
  mysql: ["*"],
  "durable-object": ["*"],
  operations: ["*"],
  testing: ["*"],
};

/**
 * Which workspace packages the src/ of each package may import; `pawl/testing` only where it is named.
 * @type {Record<string, string[]>}
 */
const PACKAGES = {
  pawl: [],
  "dispatcher-node": ["pawl"],
  "dispatcher-cloudflare-do": ["pawl"],
  cli: ["pawl", "pawl/testing", "dispatcher-node"],
};

/** Banned in packages/pawl/src: hidden time, chance and runtimes, which no simulator can control. */
const BANNED = {
  globals: [
    "setTimeout",
    "setInterval",
    "setImmediate",
    "queueMicrotask",
    "performance",
    "crypto",
    "process",
    "Buffer",
    "globalThis",
  ],
  members: ["Date.now", "Math.random"],
  // Without arguments these read the clock.
  calls: ["Date", "new Date"],
  imports: ["node:", "cloudflare:", "bun:"],
};

/** The parts that may touch what is banned. */
const REAL_WORLD = ["runtime", "testing"];

/** @typedef {{ type: string, start: number, [key: string]: any }} Node */

/**
 * @param {unknown} value
 * @param {(node: Node, parent: Node | undefined, key: string) => void} visit
 * @param {Node} [parent]
 * @param {string} [key]
 */
function walk(value, visit, parent, key = "") {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, visit, parent, key);
  } else if (value !== null && typeof value === "object" && "type" in value) {
    const node = /** @type {Node} */ (value);
    visit(node, parent, key);
    for (const [name, child] of Object.entries(node)) walk(child, visit, node, name);
  }
}

/**
 * @param {Node} node
 * @returns {unknown} what it imports
 */
function specifierOf(node) {
  switch (node.type) {
    case "ImportDeclaration":
    case "ImportExpression":
    case "ExportAllDeclaration":
    case "ExportNamedDeclaration":
    case "TSImportType":
      return node["source"]?.value;
    default:
      return undefined;
  }
}

/**
 * @param {Node} node
 * @param {Node | undefined} parent
 * @param {string} key
 * @returns {string | undefined} what is banned about it
 */
function bannedUse(node, parent, key) {
  if (node.type === "Identifier") {
    if (parent?.type === "TSTypeQuery") return undefined; // `typeof globalThis` as a type
    // `x.setTimeout` and `{ setTimeout() {} }` are names, not uses of the global.
    const isName = (key === "property" || key === "key") && !parent?.["computed"];
    return !isName && BANNED.globals.includes(node["name"]) ? node["name"] : undefined;
  }
  if (node.type === "MemberExpression") {
    const member = `${node["object"].name}.${node["property"].name ?? node["property"].value}`;
    return BANNED.members.includes(member) ? member : undefined;
  }
  if (node.type === "CallExpression" || node.type === "NewExpression") {
    const call = (node.type === "NewExpression" ? "new " : "") + node["callee"].name;
    const empty = node["arguments"].length === 0;
    return empty && BANNED.calls.includes(call) ? `${call}()` : undefined;
  }
  return undefined;
}

/**
 * @param {string} from
 * @param {string} to path in src/ without extension, such as `http/contract`
 */
function partMayImport(from, to) {
  const part = to.split("/")[0] ?? "";
  if (part === from) return true;
  const allowed = PARTS[from] ?? [];
  const any = allowed.includes("*") && part !== "testing";
  return any || allowed.includes(part) || allowed.includes(to);
}

/**
 * @param {string} root a repository
 * @returns {string[]} one line per file that PARTS names and the repository does not have
 */
function goneFiles(root) {
  const src = path.join(root, "packages", "pawl", "src");
  if (!existsSync(path.join(src, "index.ts"))) return []; // a made-up repository of a test
  const files = Object.values(PARTS)
    .flat()
    .filter((part) => part.includes("/"));
  return [...new Set(files)]
    .filter((file) => !existsSync(path.join(src, `${file}.ts`)))
    .map((file) => `PARTS of scripts/check-imports.mjs names ${file}, which is gone`);
}

/**
 * @param {string} root a repository
 * @returns {string[]} one line per broken rule
 */
export function checkImports(root) {
  /** @type {string[]} */
  const problems = goneFiles(root);
  for (const { pkg, file, text, at } of sourcesOf(root)) {
    const part = /** @type {string} */ (file.split("/")[0]).replace(/\.tsx?$/, "");
    const isPure = pkg === "pawl" && !REAL_WORLD.includes(part);
    /** @type {(where: { start: number }, message: string) => void} */
    const report = ({ start }, message) => {
      problems.push(`${at(start)} ${message}`);
    };

    const allowedPackages = PACKAGES[pkg];
    if (!allowedPackages) {
      report(
        { start: 0 },
        `package ${pkg} is not in the PACKAGES table of scripts/check-imports.mjs`,
      );
      continue;
    }
    if (pkg === "pawl" && !PARTS[part]) {
      report({ start: 0 }, `${part} is not in the PARTS table of scripts/check-imports.mjs`);
      continue;
    }

    walk(parseSync(file, text).program, (node, parent, key) => {
      const specifier = specifierOf(node);
      if (typeof specifier === "string") {
        const workspace = /^(?:@pawl\/([^/]+)|pawl(?=\/|$))/.exec(specifier);
        if (specifier.startsWith(".")) {
          const target = path.posix.join(path.posix.dirname(file), specifier);
          const to = target.replace(/\.[jt]sx?$/, "");
          if (to.startsWith("..")) report(node, `imports ${specifier}, outside its src/`);
          else if (pkg === "pawl" && !partMayImport(part, to))
            report(node, `${part} may not import ${to}`);
        } else if (workspace) {
          const name = specifier === "pawl/testing" ? specifier : (workspace[1] ?? "pawl");
          if (!allowedPackages.includes(name)) report(node, `${pkg} may not import ${specifier}`);
        } else if (isPure && BANNED.imports.some((prefix) => specifier.startsWith(prefix))) {
          report(node, `the domain may not import ${specifier}`);
        }
      }
      const banned = isPure && bannedUse(node, parent, key);
      if (banned) report(node, `the domain may not use ${banned}`);
    });
  }
  return problems;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkImports(path.dirname(path.dirname(process.argv[1])));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
