import { workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineRegistry, defineWorkflow } from "pawl";

const registry = defineRegistry({ PING: defineWorkflow({ name: "ping", run: () => "pong" }) });

export const Host = workflowsDurableObject({ workflows: registry });

type Env = { readonly OBJECTS: DurableObjectNamespace };
type Loose = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** Returns every name that an object of the class has, and those that its parts have. */
function namesOfAll(): string[] {
  const names = new Set(["ctx", "env", "engine", "#engine", "place", "#refusal", "refusal"]);
  for (const name of ["pawl", "here", "ready", "storage", "sql", "list", "create", "migrate"]) {
    names.add(name);
  }
  for (
    let of: object | null = Host.prototype as object;
    of !== null;
    of = Object.getPrototypeOf(of)
  ) {
    for (const name of Object.getOwnPropertyNames(of)) names.add(name);
  }
  return [...names];
}

async function isAnswered(ask: () => Promise<unknown>): Promise<boolean> {
  try {
    await ask();
    return true;
  } catch {
    return false;
  }
}

export default {
  async fetch(request, { OBJECTS }) {
    const object = () => OBJECTS.get(OBJECTS.idFromName("pawl")) as unknown as Loose;
    // Names that the stub has itself never leave the worker.
    const isOwn = (name: string) => name in Object.prototype || name === "fetch";
    if (new URL(request.url).pathname === "/raw") {
      const { method, args } = (await request.json()) as { method: string; args: unknown[] };
      return Response.json((await object()[method]?.(...args)) ?? null);
    }
    const answered: string[] = [];
    for (const name of namesOfAll().filter((each) => !isOwn(each))) {
      if (await isAnswered(async () => object()[name]?.({}))) answered.push(name);
      // A property is read over RPC as well, and a method is a property.
      const isMethod = answered.includes(name);
      if (!isMethod && (await isAnswered(async () => object()[name]))) {
        answered.push(`${name}, as a value`);
      }
    }
    return Response.json(answered);
  },
} satisfies ExportedHandler<Env>;
