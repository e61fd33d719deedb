import { WorkflowError } from "../model/errors.js";
import type { Logger } from "../model/logger.js";
import { IncompatibleDatabaseError, NotMigratedError, StoreClosedError } from "../store/errors.js";
import { newResponse, type WebResponse } from "../model/web.js";

/** The headers of every answer. An answer is data: it is never a page, a script or a frame, and is never kept. */
export const securityHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;

export function jsonAnswer(
  status: number,
  body: object,
  more: Readonly<Record<string, string>> = {},
): WebResponse {
  return newResponse(JSON.stringify(body), status, {
    "content-type": "application/json; charset=utf-8",
    ...securityHeaders,
    ...more,
  });
}

export function emptyAnswer(more: Readonly<Record<string, string>> = {}): WebResponse {
  return newResponse(null, 204, { ...securityHeaders, ...more });
}

/** Answers a failure. A caller learns the code and message of its own mistakes, and little of any other failure. */
export function errorAnswer(failure: unknown, route: string | null, logger: Logger): WebResponse {
  const error = publicError(failure);
  if (error !== failure) logger.error("http.failed", { route, error: String(failure) });
  const { code, status, message } = error;
  return jsonAnswer(status, { code, message }, headersOf(error));
}

function publicError(failure: unknown): WorkflowError {
  if (failure instanceof WorkflowError && failure.code !== "STORE_UNAVAILABLE") return failure;
  const isStore =
    failure instanceof WorkflowError ||
    failure instanceof NotMigratedError ||
    failure instanceof IncompatibleDatabaseError ||
    failure instanceof StoreClosedError;
  return isStore
    ? new WorkflowError("STORE_UNAVAILABLE", "the database is busy or away: try again")
    : new WorkflowError("INTERNAL_ERROR", "something went wrong here; the server's log says what");
}

function headersOf({ code }: WorkflowError): Record<string, string> {
  switch (code) {
    case "UNAUTHORIZED":
      return { "www-authenticate": "Bearer" };
    case "STORE_UNAVAILABLE":
      return { "retry-after": "1" };
    default:
      return {};
  }
}
