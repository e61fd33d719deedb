import type { HostOptions, HostProcess } from "./host.js";

/** The worker of test/workers/shards.ts with this sharding. */
export function spread(sharding: object): HostOptions & Required<Pick<HostOptions, "bindings">> {
  return { worker: "shards", bindings: { SHARDING: JSON.stringify(sharding) } };
}

/** Returns the ids of the instances in each of these objects. */
export function idsIn(host: HostProcess, objects: readonly string[]): Promise<string[][]> {
  return Promise.all(objects.map((object) => host.do<string[]>("ids", { object })));
}

/** The fields that one answer or another has. */
type Answered = {
  readonly id: string;
  readonly code: string;
  readonly details: { readonly status: string; readonly output?: unknown };
  readonly workflows: readonly { readonly name: string }[];
  readonly runs: readonly object[];
  readonly instances: readonly { readonly id: string }[];
  readonly cursor?: string;
};

/** The HTTP API, as a caller with these headers sees it. */
export class Api {
  readonly #host: HostProcess;
  readonly #headers: Record<string, string>;

  constructor(host: HostProcess, headers: Record<string, string> = {}) {
    this.#host = host;
    this.#headers = headers;
  }

  async ask(
    method: string,
    route: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<{ status: number; body: Answered }> {
    const answer = await this.#host.fetch(`/api${route}`, {
      method,
      headers: { ...this.#headers, ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: answer.status, body: (await answer.json()) as Answered };
  }

  async text(route: string): Promise<string> {
    return (await this.#host.fetch(`/api${route}`, { headers: this.#headers })).text();
  }

  /** Returns the ids of all pages. */
  async pages(route: string, between: () => Promise<unknown> = async () => {}): Promise<string[]> {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const more = cursor === undefined ? "" : `&cursor=${cursor}`;
      const { body } = await this.ask("GET", `${route}${more}`);
      found.push(...body.instances.map(({ id }) => id));
      cursor = body.cursor;
      await between();
    } while (cursor !== undefined);
    return found;
  }
}
