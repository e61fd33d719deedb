/** The `env` of the tests, as `wrangler types` writes it. */
declare namespace Cloudflare {
  interface Env {
    readonly PAWL: DurableObjectNamespace;
    readonly API_TOKEN: string;
  }
}
