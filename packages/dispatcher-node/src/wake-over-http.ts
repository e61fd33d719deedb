import { ValidationError, type HookDelivery, type WorkflowEnqueued } from "pawl";
import { checkTimeout } from "./timeout.js";

export type WakeOverHttpOptions = {
  /** The whole address of a tick endpoint, such as `https://example.org/api/_runner/tick`. */
  readonly url: string | URL;
  /** The secret that the endpoint's policy, `bearerToken(secret)`, asks for. */
  readonly token: string;
  /**
   * How long the answer may take, in milliseconds; it comes when the tick is over. Default 25 seconds, because a hook
   * may take 30.
   */
  readonly timeoutMs?: number | undefined;
};

const TIMEOUT_MS = 25_000;

/**
 * Returns a hook for `onWorkflowEnqueued` that calls the tick endpoint of a host without a process of its own. The hook
 * throws, and so is called again later, unless the endpoint answers with success in time. It follows no redirect.
 * Throws `ValidationError` for a bad URL, token or timeout.
 *
 * @example
 * ```ts
 * const pawl = createWorkflows({
 *   workflows,
 *   store,
 *   hooks: { onWorkflowEnqueued: wakeOverHttp({ url, token: secret }) },
 * });
 * ```
 */
export function wakeOverHttp(
  options: WakeOverHttpOptions,
): (happened: WorkflowEnqueued, delivery: HookDelivery) => Promise<void> {
  const { timeoutMs = TIMEOUT_MS } = options;
  const url = validUrl(options.url);
  const authorization = `Bearer ${validToken(options.token)}`;
  checkTimeout("wakeOverHttp", timeoutMs, 1);
  return async (_happened, { signal }) => {
    const response = await fetch(url, {
      method: "POST",
      headers: { authorization, "content-type": "application/json" },
      body: "{}",
      // The token is meant for this address alone.
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    });
    await response.body?.cancel();
    if (!response.ok) throw new Error(`the tick endpoint answered ${response.status}`);
  };
}

function validUrl(given: string | URL): URL {
  if (!URL.canParse(String(given))) throw new ValidationError("wakeOverHttp: url is no URL");
  const url = new URL(given);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ValidationError("wakeOverHttp: url must begin with http: or https:");
  }
  if (url.username !== "" || url.password !== "") {
    throw new ValidationError(
      "wakeOverHttp: url must not hold a password; that is what token is for",
    );
  }
  return url;
}

/** Checks the token here, because `fetch` would refuse it as a header with a message that shows it. */
function validToken(given: string): string {
  if (typeof given !== "string" || !/^[\x21-\x7e]+$/.test(given)) {
    throw new ValidationError("wakeOverHttp: token must be printable ASCII without spaces");
  }
  return given;
}
