import {
  createClient,
  InstanceTerminatedError,
  ResultTimeoutError,
  WorkflowError,
  type ClientOptions,
} from "pawl/client";
import type { Engine } from "./server.js";

// This runs in the browser, bundled with nothing but the client. Its answers travel to the test as plain
// data.

declare class EventSource {
  readonly readyState: number;
  constructor(url: string);
  addEventListener(type: string, listener: (event: { readonly data: string }) => void): void;
  close(): void;
}

type Thrown = { name: string; message: string; code: unknown; classes: string[] };

async function thrownBy(work: () => Promise<unknown>): Promise<Thrown | null> {
  try {
    await work();
    return null;
  } catch (thrown) {
    const error = thrown as Error & { readonly code?: unknown };
    const classes = { InstanceTerminatedError, ResultTimeoutError, TypeError, WorkflowError };
    return {
      name: error.name,
      message: error.message,
      code: error.code ?? null,
      classes: Object.entries(classes).flatMap(([name, of]) =>
        thrown instanceof of ? [name] : [],
      ),
    };
  }
}

const scenarios = {
  /** Uses everything of the client that a page uses. */
  async life(options: ClientOptions) {
    const client = createClient<Engine>(options);
    const { ORDER } = client.workflows;
    const params = { due: new Date(0), tags: new Map([["a", 1n]]) };
    const created = await ORDER.create({ id: "o-1", params });
    const order = await ORDER.get(created.id);
    const before = await order.status();
    await order.pause();
    await order.resume();
    const result = order.result({ timeout: "20 seconds" });
    await order.sendEvent({ type: "approval", payload: new Set(["Grace"]) });
    const { due, tags, by } = await result;
    const batch = await ORDER.createBatch([
      { id: "o-2", params },
      { id: "o-3", params },
    ]);
    const { instances } = await client.list("order", { order: "oldest", pageSize: 2 });
    const { entries } = await client.history("order", "o-1");
    return {
      isEarly: ["queued", "running", "waiting"].includes(before.status),
      output: [due.getTime(), tags.get("a") === 1n, by instanceof Set && [...by]],
      after: (await order.status()).status,
      batch: batch.map(({ id }) => id),
      listed: instances.map(({ id, createdAt }) => [id, createdAt instanceof Date]),
      history: entries.map((entry) => entry.kind),
    };
  },

  async errors(options: ClientOptions) {
    const { ORDER, FAILS } = createClient<Engine>(options).workflows;
    const params = { due: new Date(0), tags: new Map() };
    const order = await ORDER.create({ id: "taken", params });
    const failing = await FAILS.create();
    return {
      missing: await thrownBy(() => ORDER.get("missing")),
      taken: await thrownBy(() => ORDER.create({ id: "taken", params })),
      late: await thrownBy(() => order.result({ timeout: 10 })),
      failed: await thrownBy(() => failing.result()),
      terminated: await thrownBy(async () => {
        const result = order.result();
        await order.terminate();
        return result;
      }),
    };
  },

  async aborts(options: ClientOptions) {
    const { ORDER } = createClient<Engine>(options).workflows;
    const params = { due: new Date(0), tags: new Map() };
    const order = await ORDER.create({ params });
    const abort = new AbortController();
    const result = thrownBy(() => order.result({ signal: abort.signal }));
    const isOver = thrownBy(() => order.result({ signal: AbortSignal.timeout(50) }));
    setTimeout(() => abort.abort(new TypeError("enough")), 50);
    return {
      result: await result,
      timeout: await isOver,
      create: await thrownBy(() => ORDER.create({ params }, { signal: abort.signal })),
    };
  },

  async refused(options: ClientOptions) {
    return thrownBy(() => createClient<Engine>(options).list("order"));
  },

  /** Follows an instance as a page without the client would, and says so on the console. */
  async follow(url: string) {
    const source = new EventSource(url);
    const told = (type: string) => (event: { readonly data: string }) => {
      console.log(
        type,
        type === "status" ? (JSON.parse(event.data) as { status: string }).status : "",
      );
    };
    source.addEventListener("status", told("status"));
    source.addEventListener("error", () => console.log("error", source.readyState));
  },
};

export type Scenarios = typeof scenarios;
Object.assign(globalThis, { scenarios });
