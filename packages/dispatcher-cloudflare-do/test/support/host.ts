import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Response, type Miniflare } from "miniflare";
import type { TestContext } from "vitest";
import { bundled, worker, workerd } from "./workerd.js";

export type HostOptions = {
  /** A file of test/workers. Default "host". */
  readonly worker?: string;
  /** Values of its `env`. */
  readonly bindings?: Readonly<Record<string, string>>;
};

/** workerd with a worker of test/workers. It can be ended and started again on the same storage. */
export class HostProcess {
  /** The notes of bodies, in order. */
  readonly ledger: string[] = [];
  readonly #script: string;
  readonly #folder: string;
  #server: Miniflare | null = null;

  private constructor(script: string, folder: string) {
    this.#script = script;
    this.#folder = folder;
  }

  static async start(options: HostOptions = {}): Promise<HostProcess> {
    const folder = await mkdtemp(path.join(tmpdir(), "pawl-object-"));
    const host = new HostProcess(await bundled(worker(options.worker ?? "host")), folder);
    await host.start(options.bindings);
    return host;
  }

  async start(bindings: HostOptions["bindings"] = {}): Promise<void> {
    this.#server = workerd(this.#script, "Host", {
      durableObjectsPersist: this.#folder,
      bindings: { ...bindings },
      serviceBindings: {
        LEDGER: async (request: { text(): Promise<string> }) => {
          this.ledger.push(await request.text());
          return new Response(null, { status: 204 });
        },
      },
    });
    await this.#server.ready;
  }

  async stop(): Promise<void> {
    await this.#server?.dispose();
    this.#server = null;
  }

  /** Ends it for good. */
  async end(): Promise<void> {
    await this.stop();
    await rm(this.#folder, { recursive: true });
  }

  async do<T>(action: string, input: unknown = {}): Promise<T> {
    const answer = await this.fetch(`/${action}`, { method: "POST", body: JSON.stringify(input) });
    const json = (await answer.json()) as { value: T; name?: string; message?: string };
    if (answer.status !== 200) throw new Error(`${action}: ${json.name}: ${json.message}`);
    return json.value;
  }

  fetch(
    route: string,
    init: { method?: string; body?: string; headers?: Record<string, string> } = {},
  ) {
    if (this.#server === null) throw new Error("workerd does not run");
    return this.#server.dispatchFetch(`http://host${route}`, init);
  }
}

/** Starts a host for this test alone, given by its context, because concurrent tests share all else. */
export async function aHost(
  { onTestFinished }: Pick<TestContext, "onTestFinished">,
  options: HostOptions = {},
) {
  const host = await HostProcess.start(options);
  onTestFinished(() => host.end());
  return host;
}
