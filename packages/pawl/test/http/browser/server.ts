import { fileURLToPath } from "node:url";
import { serve, startRunner } from "@pawl/dispatcher-node";
import { build } from "esbuild";
import {
  createWorkflows,
  NonRetryableError,
  WorkflowEntrypoint,
  type Store,
  type WorkflowEvent,
  type WorkflowsOptions,
  type WorkflowStep,
} from "pawl";
import type { Scope } from "../../support/scope.js";

type Order = { readonly due: Date; readonly tags: ReadonlyMap<string, bigint> };

class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run({ payload }: WorkflowEvent<Order>, step: WorkflowStep) {
    const tags = await step.do("tags", () => payload.tags);
    const approval = await step.waitForEvent<ReadonlySet<string>>("approval", { type: "approval" });
    return { due: payload.due, tags, by: approval.payload };
  }
}

class FailsWorkflow extends WorkflowEntrypoint {
  async run(_event: WorkflowEvent, step: WorkflowStep): Promise<void> {
    await step.do("fails", () => {
      throw new NonRetryableError("no such card", "CardError");
    });
  }
}

const workflows = {
  ORDER: { name: "order", workflow: OrderWorkflow },
  FAILS: { name: "fails", workflow: FailsWorkflow },
} as const;

/** Starts a process with a runner. */
export async function engine(
  scope: Scope,
  store: Store,
  options: Pick<WorkflowsOptions<typeof workflows, unknown>, "authorize"> = {},
) {
  const pawl = createWorkflows({ workflows, store, ...options });
  await pawl.migrate();
  startRunner(pawl);
  scope.defer(() => pawl.close());
  return pawl;
}

export type Engine = Awaited<ReturnType<typeof engine>>;

/** Serves a page that has the scenarios, and whatever else `api` answers. Records which requests came. */
export async function site(
  scope: Scope,
  api: (request: Request) => Response | Promise<Response>,
  port = 0,
) {
  const script = await bundled();
  const requests: string[] = [];
  const html = (body: string, type: string) =>
    new Response(body, { headers: { "content-type": type } });
  const fetch = (request: Request): Response | Promise<Response> => {
    const { pathname } = new URL(request.url);
    if (pathname === "/") return html(`<script src="/page.js"></script>`, "text/html");
    if (pathname === "/page.js") return html(script, "text/javascript");
    requests.push(`${request.method} ${pathname}`);
    return api(request);
  };
  const server = await serve({ fetch }, { port });
  scope.defer(() => server.close({ timeoutMs: 0 }));
  return { url: server.url, requests, server };
}

/** Bundles the page as a user's bundler would: nothing of Node is known, and an import of it would fail. */
async function bundled(): Promise<string> {
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("./page.ts", import.meta.url))],
    bundle: true,
    write: false,
    platform: "browser",
    conditions: ["pawl-source"],
    format: "iife",
    target: "es2022",
  });
  return outputFiles[0]?.text ?? "";
}
