import { cloudflareTest } from "@cloudflare/vitest-pool-workers";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [
    cloudflareTest({
      wrangler: { configPath: "./wrangler.json" },
      miniflare: { bindings: { API_TOKEN: "a-secret-of-at-least-24-bytes" } },
    }),
  ],
  test: { include: ["*.spec.ts"] },
});
