import type { Authorize, HttpOptions } from "../authoring/policies.js";
import type { InstancesContext } from "../instances/ports.js";
import { ValidationError, WorkflowError, workflowErrorStatus } from "../model/errors.js";
import { idMaker } from "../model/ids.js";
import type { Limits } from "../model/limits.js";
import type { Logger } from "../model/logger.js";
import { quote } from "../model/quote.js";
import type { Scheduler } from "../model/seams.js";
import type { TickOptions, TickResult } from "../runner/options.js";
import { emptyAnswer, errorAnswer, jsonAnswer } from "./answers.js";
import { checkedAuthorize, denial } from "./authorize.js";
import { parseBody, readBody } from "./body.js";
import { contractWithin } from "./contract.js";
import { comeAgain } from "./event-stream.js";
import { acceptsEvents, checkKeys, checkQuery, idempotencyKey, refuseForms } from "./input.js";
import { openApiOf } from "./openapi.js";
import { operationsOf } from "./operations.js";
import type { RouteCall, RouteOperations } from "./route-call.js";
import { Router, type RouteMatch, type PathRoutes } from "./router.js";
import type { Watchers } from "./watchers.js";
import {
  isResponse,
  newResponse,
  parseUrl,
  type ByteStream,
  type WebRequest,
  type WebResponse,
  type WebUrl,
} from "../model/web.js";

type HttpContext<Tx> = {
  readonly instances: InstancesContext<Tx>;
  readonly watchers: Watchers;
  readonly logger: Logger;
  readonly fingerprint: (text: string) => Promise<string>;
  tick(options: TickOptions): Promise<TickResult>;
};

export const BASE_PATH = "/api";
const AWAY = workflowErrorStatus.STORE_UNAVAILABLE;

/** The HTTP API: one function from request to response. It never throws. */
export function httpHandler<Tx>(
  options: HttpOptions,
  context: HttpContext<Tx>,
): (request: WebRequest) => Promise<WebResponse> {
  const { limits, runtime } = context.instances;
  const basePath = checkedBasePath(options.basePath ?? BASE_PATH);
  const authorize = checkedAuthorize(options.authorize, options.tick);
  const contract = contractWithin(limits);
  const operations = operationsOf({
    instances: context.instances,
    watchers: context.watchers,
    newId: idMaker(runtime),
    tick: options.tick?.enabled === true ? (bounds) => context.tick(bounds) : null,
    openApi: once(() => openApiOf(contract, basePath)),
    fingerprint: context.fingerprint,
  });
  const handler = new Handler({
    authorize,
    router: new Router(contract, basePath),
    operations,
    limits,
    scheduler: runtime.scheduler,
    logger: context.logger,
  });
  return async (request) => {
    const response = await handler.answer(request);
    return request.method === "HEAD" ? withoutBody(response) : response;
  };
}

type HandlerParts = {
  readonly authorize: Authorize;
  readonly router: Router;
  readonly operations: RouteOperations;
  readonly limits: Limits;
  readonly scheduler: Scheduler;
  readonly logger: Logger;
};

/** Takes a request through its stations: its route, the policies, the checks of its form, and its operation. */
class Handler {
  readonly #parts: HandlerParts;

  constructor(parts: HandlerParts) {
    this.#parts = parts;
  }

  async answer(request: WebRequest): Promise<WebResponse> {
    const { router, logger } = this.#parts;
    const url = urlOf(request);
    const place = url === null ? null : router.find(url.pathname, request.method);
    try {
      return await this.#pass(request, url, place);
    } catch (error) {
      const failure = errorAnswer(error, place?.path ?? null, logger);
      const isStream = place?.match?.route.stream === true && acceptsEvents(request);
      return isStream && failure.status === AWAY ? comeAgain() : failure;
    }
  }

  async #pass(
    request: WebRequest,
    url: WebUrl | null,
    place: PathRoutes | null,
  ): Promise<WebResponse> {
    const { authorize, limits, logger, scheduler } = this.#parts;
    const body = once(() => readBody(request, limits, scheduler));
    const match = place?.match ?? null;
    const denied = await denial(
      authorize,
      match?.route.group ?? null,
      {
        method: request.method,
        url: request.url,
        route: place?.path ?? null,
        params: match?.params ?? {},
        headers: request.headers,
        // Each call parses the body anew: what a policy does to the value changes nothing here.
        body: async () => parseBody(await body(), limits),
      },
      logger,
    );
    if (denied !== null) return denied;
    if (url === null || place === null) {
      throw new WorkflowError("NOT_FOUND", "there is no such route");
    }
    return match === null
      ? withoutMethod(request, place)
      : this.#respond(match, request, url, body);
  }

  async #respond(
    { operation, route, params }: RouteMatch,
    request: WebRequest,
    url: WebUrl,
    body: () => Promise<string>,
  ): Promise<WebResponse> {
    refuseForms(request);
    checkQuery(route, url);
    const call: RouteCall = {
      params,
      url,
      headers: request.headers,
      body: route.body === undefined ? {} : await this.#bodyOf(route.body, body),
      key: route.keyed === true ? idempotencyKey(request) : undefined,
      signal: () => request.signal ?? undefined,
    };
    const perform: (given: RouteCall) => object | Promise<object> =
      this.#parts.operations[operation];
    const result = await perform(call);
    return isResponse(result) ? result : jsonAnswer(200, result);
  }

  async #bodyOf(
    schema: NonNullable<RouteMatch["route"]["body"]>,
    body: () => Promise<string>,
  ): Promise<RouteCall["body"]> {
    const given = parseBody(await body(), this.#parts.limits);
    if (given === undefined) return {};
    checkKeys(schema, given, "the body");
    return given as RouteCall["body"];
  }
}

/** The answer to a path that exists, by a method that it does not have. */
function withoutMethod({ method }: WebRequest, place: PathRoutes): WebResponse {
  const allow = { allow: place.allow.join(", ") };
  if (method === "OPTIONS") return emptyAnswer(allow);
  const { code, message, status } = new WorkflowError(
    "METHOD_NOT_ALLOWED",
    `this path takes ${allow.allow}`,
  );
  return jsonAnswer(status, { code, message }, allow);
}

function urlOf({ url }: WebRequest): WebUrl | null {
  try {
    return parseUrl(url);
  } catch {
    return null;
  }
}

function once<T extends object>(make: () => T): () => T {
  let made: T | null = null;
  return () => (made ??= make());
}

function withoutBody(response: WebResponse): WebResponse {
  if (response.body === null) return response;
  (response.body as ByteStream)
    .getReader()
    .cancel()
    .catch(() => {});
  return newResponse(null, response.status, response.headers as never);
}

function checkedBasePath(given: string): string {
  if (given === "" || given === "/") return "";
  if (typeof given === "string" && /^(\/[^/?#\s]+)+$/.test(given)) return given;
  throw new ValidationError(
    `basePath must be a path such as "/api", without a slash at its end, got ${quote(given)}`,
  );
}
