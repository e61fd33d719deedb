// @ts-check
import { existsSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";

/**
 * @typedef {object} Source
 * @property {string} pkg the folder of its package
 * @property {string} file in the package's src/, with slashes
 * @property {string} text
 * @property {(start: number) => string} at the place of a position, as `packages/pawl/src/a.ts:1`
 */

/**
 * Returns the sources of all packages, without tests and declarations.
 * @param {string} root a repository
 * @returns {Source[]}
 */
export function sourcesOf(root) {
  return readdirSync(path.join(root, "packages")).flatMap((pkg) => {
    const src = path.join(root, "packages", pkg, "src");
    if (!existsSync(src)) return [];
    return readdirSync(src, { recursive: true, encoding: "utf8" })
      .map((file) => file.replaceAll(path.sep, "/"))
      .filter((file) => /\.tsx?$/.test(file) && !/\.(test|d)\.tsx?$/.test(file))
      .toSorted()
      .map((file) => {
        const text = readFileSync(path.join(src, file), "utf8");
        const lineOf = (/** @type {number} */ start) => text.slice(0, start).split("\n").length;
        return { pkg, file, text, at: (start) => `packages/${pkg}/src/${file}:${lineOf(start)}` };
      });
  });
}
