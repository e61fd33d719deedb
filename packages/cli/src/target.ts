import type {
  CreateOptions,
  History,
  HistoryOptions,
  InstanceList,
  ListOptions,
  SentEvent,
  ResultOptions,
  TickOptions,
  TickResult,
} from "pawl";
import { createClient, type RegisteredWorkflow } from "pawl/client";
import type { InstanceMethods } from "pawl/operations";
import type { PawlConfig } from "./config.js";
import { Failure } from "./failure.js";
import { nearest } from "./nearest.js";

/** The engine that a command talks to: one in this process, or one behind its API. Both have the same shape. */
export interface CommandTarget {
  registered(): Promise<readonly RegisteredWorkflow[]>;
  readonly workflows: Readonly<Record<string, TargetWorkflow>>;
  list(workflow: string, options?: ListOptions): Promise<InstanceList>;
  history(workflow: string, id: string, options?: HistoryOptions): Promise<History>;
  tick(options?: TickOptions): Promise<TickResult>;
  close(): Promise<void>;
}

interface TargetWorkflow {
  create(options: CreateOptions): Promise<TargetInstance>;
  get(id: string): Promise<TargetInstance>;
}

export interface TargetInstance extends InstanceMethods {
  readonly id: string;
  sendEvent(event: SentEvent): Promise<void>;
  result(options?: ResultOptions): Promise<unknown>;
}

export function inProcess({ pawl, close }: PawlConfig): CommandTarget {
  const registered = Object.entries(pawl.options.workflows).map(([binding, { name }]) => ({
    name,
    binding,
  }));
  return {
    registered: async () => registered,
    workflows: pawl.workflows as Readonly<Record<string, TargetWorkflow>>,
    list: (workflow, options) => pawl.list(workflow, options),
    history: (workflow, id, options) => pawl.history(workflow, id, options),
    tick: (options) => pawl.tick(options),
    close: async () => {
      await pawl.close();
      await close?.();
    },
  };
}

export function overHttp(url: string, token: string | undefined): CommandTarget {
  checkUrl(url);
  // A header takes no other characters. The message does not show the token.
  if (token !== undefined && !/^[\u0021-\u007E]+$/.test(token)) {
    throw new Failure("usage", "INVALID_TOKEN", "the token may only have visible ASCII characters");
  }
  const client = createClient({
    baseUrl: url,
    ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }),
  });
  return { ...client, close: async () => {} };
}

function checkUrl(url: string): void {
  if (!/^https?:\/\/./i.test(url) || !URL.canParse(url)) {
    const message = `--url must begin with http:// or https://, got ${url}`;
    throw new Failure("usage", "INVALID_URL", message);
  }
  const { username, password } = new URL(url);
  if (username === "" && password === "") return;
  throw new Failure("usage", "INVALID_URL", "--url must not have a user name or password", {
    hint: "give a token instead: --token, or the variable PAWL_TOKEN",
  });
}

export type FoundWorkflow = { readonly name: string; readonly workflow: TargetWorkflow };

/** Finds a workflow by its name, or by its binding key. */
export async function findWorkflow(target: CommandTarget, given: string): Promise<FoundWorkflow> {
  const registered = await target.registered();
  const found =
    registered.find(({ name }) => name === given) ??
    registered.find(({ binding }) => binding === given);
  const workflow = found && target.workflows[found.binding];
  if (found === undefined || workflow === undefined) throw unknownWorkflow(given, registered);
  return { name: found.name, workflow };
}

function unknownWorkflow(given: string, registered: readonly RegisteredWorkflow[]): Failure {
  const names = registered.map(({ name }) => name);
  const meant = nearest(given, names);
  const known = names.map((name) => `"${name}"`).join(", ");
  return new Failure("notFound", "WORKFLOW_NOT_FOUND", `there is no workflow "${given}"`, {
    hint: `${meant === undefined ? "" : `did you mean "${meant}"? `}known here: ${known}`,
  });
}
