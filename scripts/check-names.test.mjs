// @ts-check
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { checkNames } from "./check-names.mjs";

/** @param {Record<string, string>} files */
function problemsOf(files) {
  const root = mkdtempSync(path.join(tmpdir(), "pawl-names-"));
  try {
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(path.dirname(path.join(root, file)), { recursive: true });
      writeFileSync(path.join(root, file), text);
    }
    return checkNames(root);
  } finally {
    rmSync(root, { recursive: true });
  }
}

const a = "packages/pawl/src/a.ts";
const b = "packages/cli/src/b.ts";

test.each([
  ["two exported types", "export type Lane = 1;", "export interface Lane {}"],
  ["two exported functions", "export function run() {}", "export const run = 1;"],
  ["a type of one file and another's export", "export class Run {}", "type Run = 1;"],
])("finds %s", (_, one, other) => {
  const [problem, ...more] = problemsOf({ [a]: one, [b]: `\n${other}` });
  expect(problem).toContain("2 meanings");
  expect(problem).toContain(`${a}:1`);
  expect(problem).toContain(`${b}:2`);
  expect(more).toEqual([]);
});

test.each([
  ["a type and its value in one file", "export type Kind = 1; export const Kind = 1;", ""],
  ["an export of what another file declares", "export class Run {}", 'export { Run } from "x";'],
  ["helpers that stay in their files", "function show() {}", "function show() {}"],
  ["a local function beside an export", "export function show() {}", "function show() {}"],
])("accepts %s", (_, one, other) => {
  expect(problemsOf({ [a]: one, [b]: other })).toEqual([]);
});
