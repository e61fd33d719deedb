// @ts-check
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { checkImports } from "./check-imports.mjs";

/**
 * @param {string} file
 * @param {string} text
 */
function problemsOf(file, text) {
  const root = mkdtempSync(path.join(tmpdir(), "pawl-imports-"));
  try {
    mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
    writeFileSync(path.join(root, file), text);
    return checkImports(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

const src = "packages/pawl/src";

test.each([
  [`${src}/model/a.ts`, `import { x } from "../store/x.js";`, "model may not import store/x"],
  [`${src}/store/a.ts`, `export * from "../engine/x.js";`, "store may not import engine/x"],
  [`${src}/store/a.ts`, `export { x } from "../sql/x.js";`, "store may not import sql/x"],
  [`${src}/sql/a.ts`, `await import("../engine/x.js");`, "sql may not import engine/x"],
  [
    `${src}/engine/a.ts`,
    `import type { X } from "../runner/x.js";`,
    "engine may not import runner/x",
  ],
  [`${src}/engine/a.ts`, `type X = import("../runner/x.js").X;`, "engine may not import runner/x"],
  [`${src}/engine/a.ts`, `import { x } from "../runtime.js";`, "engine may not import runtime"],
  [`${src}/engine/a.ts`, `import "../workflows.js";`, "engine may not import workflows"],
  [`${src}/client/a.ts`, `import { x } from "../http/handler.js";`, "client may not import http/h"],
  [
    `${src}/workflows.ts`,
    `import { x } from "./testing/x.js";`,
    "workflows may not import testing",
  ],
  [`${src}/model/a.ts`, `import "../../../dispatcher-node/src/index.js";`, "outside its src/"],
  [`${src}/model/a.ts`, `import { x } from "@pawl/dispatcher-node";`, "pawl may not import @pawl"],
  [`${src}/helpers/a.ts`, `export {};`, "helpers is not in the PARTS table"],
  ["packages/dispatcher-node/src/a.ts", `import "pawl/testing";`, "may not import pawl/testing"],
  ["packages/new/src/a.ts", `export {};`, "new is not in the PACKAGES table"],
  [`${src}/model/a.ts`, `import fs from "node:fs";`, "may not import node:fs"],
  [`${src}/model/a.ts`, `import { x } from "cloudflare:workers";`, "cloudflare:workers"],
  [`${src}/model/a.ts`, `const at = Date.now();`, "Date.now"],
  [`${src}/model/a.ts`, `const at = Date["now"]();`, "Date.now"],
  [`${src}/model/a.ts`, `const at = new Date();`, "new Date()"],
  [`${src}/model/a.ts`, `const at = new Date;`, "new Date()"],
  [`${src}/model/a.ts`, `const at = Date();`, "Date()"],
  [`${src}/model/a.ts`, `const at = performance.now();`, "performance"],
  [`${src}/model/a.ts`, `const x = Math.random();`, "Math.random"],
  [`${src}/model/a.ts`, `setTimeout(f, 1);`, "setTimeout"],
  [`${src}/model/a.ts`, `const timer = { setTimeout };`, "setTimeout"],
  [`${src}/model/a.ts`, `globalThis.setInterval(f, 1);`, "globalThis"],
  [`${src}/model/a.ts`, `\n\nqueueMicrotask(f);`, "a.ts:3 the domain may not use queueMicrotask"],
  [`${src}/model/a.ts`, `const x = process.env.X ?? Buffer.from("x");`, "process"],
])("%s: %s", (file, text, problem) => {
  expect(problemsOf(file, text).join("\n")).toContain(problem);
});

test.each([
  [`${src}/engine/a.ts`, `import type { Clock } from "../model/seams.js";`],
  [`${src}/engine/a.ts`, `import { type Clock } from "../model/seams.js";`],
  [`${src}/runner/a.ts`, `import { x } from "../engine/x.js"; import { y } from "./y.js";`],
  [`${src}/client/a.ts`, `import { x } from "../http/contract.js";`],
  [`${src}/workflows.ts`, `import { x } from "./runner/x.js"; import { y } from "./runtime.js";`],
  [`${src}/model/a.test.ts`, `import "../testing/x.js"; import "node:fs"; Date.now();`],
  [`${src}/runtime.ts`, `export const now = () => Date.now();`],
  [`${src}/testing/a.ts`, `import { x } from "../runner/x.js"; setTimeout(x, 1);`],
  [`${src}/web.d.ts`, `declare function setTimeout(): void;`],
  [`${src}/model/a.ts`, `new Date(0); Date.UTC(2026, 0); scheduler.setTimeout(f, 1);`],
  [`${src}/model/a.ts`, `interface Timer { setTimeout(): void } // Date.now()`],
  ["packages/dispatcher-node/src/a.ts", `import "pawl"; import "node:fs"; Date.now();`],
])("allows %s: %s", (file, text) => {
  expect(problemsOf(file, text)).toEqual([]);
});
