import type { Policy } from "./authoring/policies.js";
import { ValidationError, WorkflowError } from "./model/errors.js";
import { sha256 } from "./runtime.js";

export type { Authorize, AuthorizeRequest, Policy } from "./authoring/policies.js";

/**
 * Returns a policy that lets requests pass which carry `Authorization: Bearer <secret>`, and denies others with
 * `UNAUTHORIZED`. Given several secrets it accepts each of them, so that a secret can be changed without an
 * interruption. Secrets are compared in constant time. Throws `ValidationError` if a secret is empty or has spaces.
 *
 * @example
 * ```ts
 * const pawl = createWorkflows({ workflows, store, authorize: { all: bearerToken(secret) } });
 * ```
 */
export function bearerToken(secrets: string | readonly string[]): Policy {
  const known = (Array.isArray(secrets) ? secrets : [secrets]).map(checkedSecret);
  if (known.length === 0) throw new ValidationError("bearerToken needs a secret");
  const wanted = Promise.all(known.map(sha256));
  wanted.catch(() => {}); // each request that awaits it gets the error
  return async ({ headers }) => {
    const [, token] = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "") ?? [];
    const given = await sha256(token ?? "");
    // Every secret is compared, each to its end, so that the time this takes tells nothing about the secrets.
    let isKnown = false;
    for (const digest of await wanted) isKnown = isSame(digest, given) || isKnown;
    if (token === undefined || !isKnown) {
      throw new WorkflowError("UNAUTHORIZED", "a valid bearer token is needed");
    }
  };
}

function checkedSecret(secret: unknown): string {
  if (typeof secret === "string" && /^\S+$/.test(secret)) return secret;
  throw new ValidationError("bearerToken: a secret must be a string without spaces, and not empty");
}

/** Compares digests in constant time. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
