import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";

/** Bundles a worker as one file, as wrangler would. `alias` puts one module in the place of another. */
export async function bundled(
  file: string,
  alias: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [file],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    conditions: ["pawl-source"],
    external: ["cloudflare:*", "node:*"],
    alias: { ...alias },
  });
  return (outputFiles[0] as { text: string }).text;
}

/** Makes a workerd with one worker, whose class `className` is bound as OBJECTS. */
export function workerd(
  script: string,
  className: string,
  options: Partial<MiniflareOptions> = {},
): Miniflare {
  return new Miniflare({
    modules: [{ type: "ESModule", path: "worker.mjs", contents: script }],
    compatibilityDate: "2026-04-20",
    durableObjects: { OBJECTS: { className, useSQLite: true } },
    ...options,
  } as MiniflareOptions);
}

/**
 * Makes the same on storage in memory, where there is a folder for that, for suites that write all the time.
 */
export async function volatileWorkerd(
  ...[script, className, options]: Parameters<typeof workerd>
): Promise<{ readonly server: Miniflare; readonly end: () => Promise<void> }> {
  const folder = await mkdtemp(path.join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "pawl-"));
  const server = workerd(script, className, { ...options, durableObjectsPersist: folder });
  await server.ready;
  return {
    server,
    end: async () => {
      await server.dispose();
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns the path of a file of test/workers. */
export function worker(name: string): string {
  return fileURLToPath(new URL(`../workers/${name}.ts`, import.meta.url));
}
