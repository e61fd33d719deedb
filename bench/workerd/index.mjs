// @ts-check
// Opens a workerd with one of the Workers in worker/, on files in a folder of its own.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { Miniflare } from "miniflare";

/**
 * @param {string} worker
 * @param {object} bindings
 * @param {Record<string, { className: string, useSQLite: boolean }>} [bindings.durableObjects]
 * @param {Record<string, { name: string, className: string }>} bindings.workflows
 * @returns {Promise<{ url: string, end: () => Promise<void> }>}
 */
export async function openWorkerd(worker, bindings) {
  const folder = await mkdtemp(path.join(tmpdir(), "pawl-bench-"));
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`worker/${worker}`, import.meta.url))],
    bundle: true,
    write: false,
    format: "esm",
    target: "es2022",
    external: ["cloudflare:*", "node:*"],
  });
  const server = new Miniflare({
    modules: [{ type: "ESModule", path: "worker.mjs", contents: outputFiles[0]?.text ?? "" }],
    compatibilityDate: "2026-04-20",
    durableObjectsPersist: path.join(folder, "objects"),
    workflowsPersist: path.join(folder, "workflows"),
    ...bindings,
  });
  const url = await server.ready;
  return {
    url: url.origin,
    end: async () => {
      await server.dispose();
      await rm(folder, { recursive: true });
    },
  };
}
