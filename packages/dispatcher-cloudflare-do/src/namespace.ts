import type { Registry } from "pawl";
import type { RpcAnswer, RpcCall } from "./calls.js";
import { layoutOf, type Layout, type Sharding } from "./layout.js";
import type { SiblingAnswer, SiblingCall } from "./siblings.js";

/** A binding to the class of `workflowsDurableObject`: `env.PAWL`. */
export interface WorkflowsNamespace {
  idFromName(name: string): DurableObjectId;
  get(id: DurableObjectId): { fetch(request: Request): Promise<Response> };
}

/** What the object can be asked. */
export interface WorkflowsObject {
  fetch(request: Request): Promise<Response>;
  /** Of `workflowsBinding`. */
  call(call: RpcCall): Promise<RpcAnswer>;
  /** Of the other objects of the namespace. */
  sibling(call: SiblingCall): Promise<SiblingAnswer>;
}

/** What the class was made with, as far as it says which object has what. */
export type SpreadOptions<R extends Registry = Registry> = Sharding & {
  readonly workflows: R;
  /** Default "/api". */
  readonly basePath?: string | undefined;
};

export function objectIn(namespace: WorkflowsNamespace, name: string): WorkflowsObject {
  return namespace.get(namespace.idFromName(name)) as WorkflowsObject;
}

/**
 * The HTTP API of the engine. With the options of the class if it has shards: each request then goes to the object that
 * has the instance. Without, the first object passes it on.
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

/** Any object answers any request. The one that has the instance needs to ask no other. */
function objectFor(layout: Layout, pathname: string, basePath: string): string {
  const base = basePath === "/" ? "" : basePath;
  const rest = pathname.startsWith(base) ? pathname.slice(base.length) : "";
  const [, workflow, id] = /^\/workflows\/([^/]+)\/instances(?:\/([^/]+))?/.exec(rest) ?? [];
  if (workflow === undefined) return layout.names[0] as string;
  return id === undefined || id === "batch"
    ? anyOf(layout.namesOf(decoded(workflow)))
    : layout.nameOf({ workflow: decoded(workflow), id: decoded(id) });
}

/** What is not for one instance is shared out. */
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
