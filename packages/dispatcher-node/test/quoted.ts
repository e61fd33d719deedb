import { readFileSync } from "node:fs";

const root = new URL("../../../", import.meta.url);

function read(path: string): string {
  return readFileSync(new URL(path, root), "utf8");
}

/** Returns the TypeScript examples of a page of the docs, in their order. */
export function examplesIn(page: string): string[] {
  return Array.from(read(page).matchAll(/^```ts\n(.*?)^```$/gms), ([, code = ""]) => code);
}

/**
 * Returns what a source file has between `// #region name` and `// #endregion`, without the common
 * indentation.
 */
export function regionsOf(source: string): string[] {
  const regions = read(source).matchAll(/^( *)\/\/ #region.*?\n(.*?)^ *\/\/ #endregion$/gms);
  return Array.from(regions, ([, indent = "", code = ""]) =>
    code.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
  );
}

export function wholeOf(source: string): string {
  return read(source);
}
