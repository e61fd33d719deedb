import type { Answer, Call } from "./calls.js";

/** One object holds everything that a namespace binding leads to. */
const OBJECT_NAME = "pawl";

/** A binding to the class of `workflowsDurableObject`: `env.PAWL`. */
export interface WorkflowsNamespace {
  idFromName(name: string): DurableObjectId;
  get(id: DurableObjectId): { fetch(request: Request): Promise<Response> };
}

/** What the object can be asked. */
export interface WorkflowsObject {
  fetch(request: Request): Promise<Response>;
  call(call: Call): Promise<Answer>;
}

export function objectIn(namespace: WorkflowsNamespace): WorkflowsObject {
  return namespace.get(namespace.idFromName(OBJECT_NAME)) as WorkflowsObject;
}

/** The HTTP API of the engine in the object. */
export function workflowsFetch(namespace: WorkflowsNamespace, request: Request): Promise<Response> {
  return objectIn(namespace).fetch(request);
}
