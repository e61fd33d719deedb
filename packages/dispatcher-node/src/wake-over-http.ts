import { ValidationError, type HookDelivery, type WorkflowEnqueued } from "pawl";
import { checkTimeout } from "./timeout.js";

export type WakeOverHttpOptions = {
  /** The whole address of a tick endpoint, such as `https://example.org/api/_runner/tick`. */
  readonly url: string | URL;
  /** What its policy asks for: `bearerToken(token)`. */
  readonly token: string;
  /** For the whole answer, which comes when the tick is over. Default 25 seconds: a hook has 30. */
  readonly timeoutMs?: number | undefined;
};

const TIMEOUT_MS = 25_000;

/**
 * A hook for `onWorkflowEnqueued` that calls the tick endpoint of a host that has no process of its own. Whatever is
 * no success throws, and so is tried again.
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
      // The token is for this address alone.
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

/** Refused here: as a header's value it would be refused with a message that has it. */
function validToken(given: string): string {
  if (typeof given !== "string" || !/^[\x21-\x7e]+$/.test(given)) {
    throw new ValidationError("wakeOverHttp: token must be printable ASCII without spaces");
  }
  return given;
}
