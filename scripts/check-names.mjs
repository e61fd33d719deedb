// @ts-check
// Checks that a name has one meaning: no two files of the packages declare the same exported name, and no file declares a
// type or class of its own under a name that another file exports.
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "oxc-parser";
import { sourcesOf } from "./sources.mjs";

/** @typedef {{ type: string, start: number, [key: string]: any }} Node */
/** @typedef {{ name: string, isExported: boolean, isType: boolean, start: number }} Declared */

const TYPES = ["ClassDeclaration", "TSInterfaceDeclaration", "TSTypeAliasDeclaration"];

/**
 * @param {Node} statement of a module, at its top
 * @returns {Declared[]}
 */
function declaredBy(statement) {
  const isExported = statement.type === "ExportNamedDeclaration";
  /** @type {Node | null} */
  const declaration = isExported ? statement["declaration"] : statement;
  if (declaration === null || declaration === undefined) return [];
  const { start } = declaration;
  if (declaration.type === "VariableDeclaration") {
    return declaration["declarations"].map((/** @type {Node} */ { id }) => {
      return { name: id.name, isExported, isType: false, start };
    });
  }
  const isType = TYPES.includes(declaration.type);
  if (!isType && declaration.type !== "FunctionDeclaration") return [];
  return [{ name: declaration["id"].name, isExported, isType, start }];
}

/**
 * @param {string} root a repository
 * @returns {string[]} one line per name with two meanings
 */
export function checkNames(root) {
  /** @type {Map<string, (Declared & { where: string, file: string })[]>} */
  const byName = new Map();
  for (const { pkg, file, text, at } of sourcesOf(root)) {
    for (const statement of parseSync(file, text).program.body) {
      for (const declared of declaredBy(statement)) {
        const known = byName.get(declared.name) ?? [];
        const where = at(declared.start);
        byName.set(declared.name, [...known, { ...declared, where, file: `${pkg}/${file}` }]);
      }
    }
  }
  return Array.from(byName, ([name, all]) => {
    const counted = all.filter(({ isExported, isType }) => isExported || isType);
    const files = new Set(counted.map(({ file }) => file));
    if (files.size < 2 || !counted.some(({ isExported }) => isExported)) return [];
    return [`${name} has ${files.size} meanings: ${counted.map(({ where }) => where).join(", ")}`];
  }).flat();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = checkNames(path.dirname(path.dirname(process.argv[1])));
  for (const problem of problems) console.error(problem);
  if (problems.length > 0) process.exit(1);
}
