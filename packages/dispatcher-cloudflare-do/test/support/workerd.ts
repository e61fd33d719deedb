import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";

const workers = fileURLToPath(new URL("../workers", import.meta.url));

/** A worker of test/workers as one file. */
export async function bundled(name: string): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [path.join(workers, `${name}.ts`)],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["pawl-source"],
    external: ["cloudflare:*", "node:*"],
  });
  return (outputFiles[0] as { text: string }).text;
}

/** workerd with one worker, whose class `className` is bound as OBJECTS. */
export function workerd(
  script: string,
  className: string,
  options: Partial<MiniflareOptions> = {},
): Miniflare {
  return new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-20",
    durableObjects: { OBJECTS: { className, useSQLite: true } },
    ...options,
  } as MiniflareOptions);
}
