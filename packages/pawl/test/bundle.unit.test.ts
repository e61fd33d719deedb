import { fileURLToPath } from "node:url";
import { runInNewContext } from "node:vm";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { expect, test } from "vitest";

/**
 * The limits of what a worker ships, minified. A free Cloudflare plan takes 3 MB compressed, and every cold
 * start compiles it. The engine with its SQLite store is 76 kB compressed.
 */
const BUDGET_BYTES = { minified: 240_000, gzipped: 77_000 };

/**
 * A minifier keeps these names. `process` and `setImmediate` may be used where they exist: see the test
 * below.
 */
const NODE_GLOBALS = /\b(?:Buffer|require|__dirname|__filename)\s*[(.[]/;

const entry = (name: string): string =>
  fileURLToPath(new URL(`../src/${name}.ts`, import.meta.url));

async function bundle() {
  const { outputFiles, metafile } = await build({
    stdin: {
      contents: `export * from "${entry("index")}"; export * from "${entry("durable-object")}";`,
      resolveDir: fileURLToPath(new URL(".", import.meta.url)),
    },
    bundle: true,
    write: false,
    minify: true,
    metafile: true,
    platform: "neutral",
    mainFields: ["module", "main"],
    format: "iife",
    globalName: "pawl",
    target: "es2022",
  });
  const [output] = Object.values(metafile.outputs);
  return { text: outputFiles[0]?.text ?? "", imports: output?.imports ?? [] };
}

test("the engine bundles into one small neutral file without imports or Node globals", async () => {
  const { text, imports } = await bundle();
  expect(imports).toEqual([]);
  const minified = Buffer.byteLength(text);
  const gzipped = gzipSync(text).length;
  console.log(`the engine's bundle: ${minified} bytes, ${gzipped} gzipped`);
  expect(text.match(NODE_GLOBALS)).toBe(null);
  expect(minified).toBeLessThan(BUDGET_BYTES.minified);
  expect(gzipped).toBeLessThan(BUDGET_BYTES.gzipped);
});

test("the bundle loads where there is nothing but the language", async () => {
  const { text } = await bundle();
  expect(runInNewContext(`${text}; typeof pawl.createWorkflows`, {})).toBe("function");
});
