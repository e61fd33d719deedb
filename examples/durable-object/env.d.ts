/** As `wrangler types` writes it: what `env` of the tests has. */
declare namespace Cloudflare {
  interface Env {
    readonly PAWL: DurableObjectNamespace;
    readonly API_TOKEN: string;
  }
}
