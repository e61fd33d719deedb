import type { RuntimeHeaders, RuntimeResponse } from "../model/web.js";

/** A request as a policy sees it. */
export type AuthorizeRequest = {
  readonly method: string;
  /** The URL as it was requested, with its query. */
  readonly url: string;
  /**
   * The route with the names of its parameters, such as `/workflows/:workflowName/instances`; null if there is none.
   */
  readonly route: string | null;
  /** `workflowName` and `instanceId`, if the route has them. They are as requested, not checked. */
  readonly params: Readonly<Record<string, string>>;
  readonly headers: RuntimeHeaders;
  /**
   * Resolves to the body as JSON, or to undefined if there is none. The body is read at the first call; each call
   * returns a new value.
   */
  readonly body: () => Promise<unknown>;
};

/**
 * Decides whether a request may pass. It lets the request pass by returning nothing. It denies the request by throwing
 * a `WorkflowError`, such as `new WorkflowError("UNAUTHORIZED", "who are you?")`, or by returning or throwing the
 * response to send. If it throws or returns anything else, the request is denied with `FORBIDDEN` and the log says so.
 */
export type Policy = (
  request: AuthorizeRequest,
) => void | RuntimeResponse | Promise<void | RuntimeResponse>;

/** The policies of the HTTP API. A request must pass `all` and the policy of its route, as far as these are given. */
export type Authorize = {
  /** Asked first for every request, even if there is no such route. */
  readonly all?: Policy | undefined;
  /** Asked before instances are created. */
  readonly create?: Policy | undefined;
  /** Asked before an instance is paused, resumed, terminated or restarted. */
  readonly manage?: Policy | undefined;
  /** Asked before an event is sent. */
  readonly sendEvent?: Policy | undefined;
  /** Asked before anything is read: lists, statuses, histories, streams and the OpenAPI document. */
  readonly read?: Policy | undefined;
  /** Asked before a tick. */
  readonly tick?: Policy | undefined;
};

/** The policy that guards a route, after `all`. */
export type PolicyGroup = Exclude<keyof Authorize, "all">;

/** Whether `POST /_runner/tick` exists. It needs a policy in `authorize.tick` or `authorize.all`. */
export type TickRoute = {
  readonly enabled: boolean;
  /** Lets anyone tick without a policy. It has to be said explicitly, because a tick costs work. */
  readonly insecure?: boolean | undefined;
};

/** The options of the HTTP API. */
export type HttpOptions = {
  /** The path under which the routes begin. Default `"/api"`; use `""` where a framework takes the prefix away. */
  readonly basePath?: string | undefined;
  /** The policies that decide who may do what. Without them, anyone who reaches the API may do everything but tick. */
  readonly authorize?: Authorize | undefined;
  /** Whether runs can be advanced over HTTP. Default: no. */
  readonly tick?: TickRoute | undefined;
};
