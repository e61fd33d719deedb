import { workflowsDurableObject, workflowsFetch } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

type Env = { readonly OBJECTS: DurableObjectNamespace; readonly LEDGER: Fetcher };

/** The report of a body before it returns its token: the results of earlier steps that the code was given. */
export type Entry = {
  readonly id: string;
  readonly step: number;
  readonly attempt: number;
  readonly token: string;
  readonly saw: readonly string[];
};

const STEPS = 8;

const registry = defineRegistry({
  TOKENS: defineWorkflow({
    name: "tokens",
    async run({ instanceId: id }, step, { env }) {
      const saw: string[] = [];
      const tell = async (n: number, attempt: number): Promise<string> => {
        const entry: Entry = { id, step: n, attempt, token: crypto.randomUUID(), saw };
        const body = JSON.stringify(entry);
        await (env as Env).LEDGER.fetch("http://ledger/", { method: "POST", body });
        // Each run has a retry on its way.
        if (n === 2 && attempt === 1) throw new Error("once more");
        return entry.token;
      };
      for (let n = 1; n <= STEPS; n++) {
        if (n === 5) await step.sleep("nap", 200);
        const retries = { limit: 9, delay: 20, backoff: "constant" } as const;
        saw.push(await step.do(`step ${n}`, { retries }, ({ attempt }) => tell(n, attempt)));
      }
      return saw;
    },
  }),
});

export const Host = workflowsDurableObject<typeof registry, Env>({ workflows: registry });

export default {
  fetch: (request, { OBJECTS }) => workflowsFetch(OBJECTS, request),
} satisfies ExportedHandler<Env>;
