import type { Registry } from "pawl";
import type { RpcAnswer, RpcCall } from "./calls.js";
import { layoutOf, type Layout, type Sharding } from "./layout.js";
import type { SiblingAnswer, SiblingCall } from "./siblings.js";

/** A binding to the class of `workflowsDurableObject`: `env.PAWL`. */
export interface WorkflowsNamespace {
  idFromName(name: string): DurableObjectId;
  get(id: DurableObjectId): { fetch(request: Request): Promise<Response> };
}

/** The calls that the object answers. */
export interface WorkflowsObject {
  fetch(request: Request): Promise<Response>;
  /** Answers a call of `workflowsBinding`. */
  call(call: RpcCall): Promise<RpcAnswer>;
  /** Answers another object of the namespace. */
  sibling(call: SiblingCall): Promise<SiblingAnswer>;
}

/** The options of the class that say which object has which instance. */
export type SpreadOptions<R extends Registry = Registry> = Sharding & {
  readonly workflows: R;
  /** The path of the API; "/api" by default. */
  readonly basePath?: string | undefined;
};

export function objectIn(namespace: WorkflowsNamespace, name: string): WorkflowsObject {
  return namespace.get(namespace.idFromName(name)) as WorkflowsObject;
}

/**
 * Answers a request by the HTTP API of the engine. If the class has shards, give the options of the class: each request
 * then goes to the object that has the instance. Without them, the first object passes it on.
 */
export function workflowsFetch(
  namespace: WorkflowsNamespace,
  request: Request,
  options?: SpreadOptions,
): Promise<Response> {
  const layout = layoutOf(options ?? {});
  const name = objectFor(layout, new URL(request.url).pathname, options?.basePath ?? "/api");
  return objectIn(namespace, name).fetch(request);
}

/**
 * Picks the object for a request. Any object answers any request, but the one that has the instance need not ask
 * another.
 */
function objectFor(layout: Layout, pathname: string, basePath: string): string {
  const base = basePath === "/" ? "" : basePath;
  const rest = pathname.startsWith(base) ? pathname.slice(base.length) : "";
  const [, workflow, id] = /^\/workflows\/([^/]+)\/instances(?:\/([^/]+))?/.exec(rest) ?? [];
  if (workflow === undefined) return layout.names[0] as string;
  return id === undefined || id === "batch"
    ? anyOf(layout.namesOf(decoded(workflow)))
    : layout.nameOf({ workflow: decoded(workflow), id: decoded(id) });
}

/** Picks an object for a request that is not about one instance. */
export function anyOf(names: readonly string[]): string {
  return names[Math.floor(Math.random() * names.length)] as string;
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
