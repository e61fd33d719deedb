import type { Scope } from "./scope.js";

export type Kind = "postgres" | "mariadb" | "mysql";

export type StoreName = "sqlite" | Kind;

const kinds: readonly Kind[] = ["postgres", "mariadb", "mysql"];
const known: readonly StoreName[] = ["sqlite", ...kinds];

/** The databases that this run is about: all, or those of PAWL_TEST_STORES. */
export const stores: readonly StoreName[] = storesIn(process.env["PAWL_TEST_STORES"]);

function storesIn(list: string | undefined): readonly StoreName[] {
  if (list === undefined) return known;
  return list.split(",").map((word) => {
    const store = known.find((name) => name === word.trim());
    if (store === undefined) throw new Error(`PAWL_TEST_STORES: there is no store "${word}"`);
    return store;
  });
}

/** The servers among them. */
export const servers: readonly Kind[] = kinds.filter((kind) => stores.includes(kind));

export function sharedServer(kind: Kind): string {
  const variable = `PAWL_TEST_${kind.toUpperCase()}_URL`;
  const url = process.env[variable];
  if (!url) throw new Error(`${variable} names no server, and PAWL_TEST_STORES asks for one`);
  return url;
}

const control = process.env["PAWL_TEST_CONTROL_URL"];

/** False only if all servers were given by URL, because then nobody can start or crash one for a test. */
export const canStartServers = control !== undefined;

export type PrivateServer = {
  readonly url: string;
  /** Restarts the server as after a power cut, on the same port and data. */
  restart(): Promise<void>;
};

/** Starts a server that only this test uses, and that goes with its scope. */
export async function privateServer(scope: Scope, kind: Kind): Promise<PrivateServer> {
  const { id, url } = (await post(`start/${kind}`)) as { id: string; url: string };
  scope.defer(() => post(`stop/${id}`));
  return { url, restart: async () => void (await post(`restart/${id}`)) };
}

async function post(path: string): Promise<unknown> {
  const answer = await fetch(`${control}/${path}`, { method: "POST" });
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${body}`);
  return JSON.parse(body);
}
