import type { RuntimeHeaders, RuntimeResponse } from "../model/web.js";

/** What a policy sees of a request. */
export type AuthorizeRequest = {
  readonly method: string;
  /** As given, with its query. */
  readonly url: string;
  /** The route's path with its parameters' names, or null if there is no such route. */
  readonly route: string | null;
  /** `workflowName` and `instanceId`, where the route has them: as given, not checked. */
  readonly params: Readonly<Record<string, string>>;
  readonly headers: RuntimeHeaders;
  /** The body as JSON, read when first asked for; undefined if there is none. */
  readonly body: () => Promise<unknown>;
};

/**
 * Lets a request pass by returning nothing. It denies by throwing, `new WorkflowError("UNAUTHORIZED", …)` for
 * instance, or by returning the response to send. Whatever else it throws or returns is `FORBIDDEN`.
 */
export type Policy = (
  request: AuthorizeRequest,
) => void | RuntimeResponse | Promise<void | RuntimeResponse>;

export type Authorize = {
  /** Comes first, for every request, also where there is no route. */
  readonly all?: Policy | undefined;
  readonly create?: Policy | undefined;
  /** Pause, resume, terminate, restart. */
  readonly manage?: Policy | undefined;
  readonly sendEvent?: Policy | undefined;
  /** Everything that only tells. */
  readonly read?: Policy | undefined;
  readonly tick?: Policy | undefined;
};

export type TickRoute = {
  readonly enabled: boolean;
  /** Anyone may tick: said aloud, because a tick costs work. */
  readonly insecure?: boolean | undefined;
};

/** The settings of the HTTP API. */
export type HttpOptions = {
  /** Where the routes begin; default "/api". */
  readonly basePath?: string | undefined;
  readonly authorize?: Authorize | undefined;
  /** Whether runs can be advanced over HTTP. Default: they cannot. */
  readonly tick?: TickRoute | undefined;
};
