import type { Policy } from "./authoring/policies.js";
import { ValidationError, WorkflowError } from "./model/errors.js";
import { sha256 } from "./runtime.js";

export type { Authorize, AuthorizeRequest, Policy } from "./authoring/policies.js";

/**
 * Lets requests pass that carry `Authorization: Bearer <secret>`. Several secrets are for changing them without an
 * interruption: each is good.
 */
export function bearerToken(secrets: string | readonly string[]): Policy {
  const known = (Array.isArray(secrets) ? secrets : [secrets]).map(checkedSecret);
  if (known.length === 0) throw new ValidationError("bearerToken needs a secret");
  const wanted = Promise.all(known.map(sha256));
  wanted.catch(() => {}); // whoever asks is told
  return async ({ headers }) => {
    const [, token] = /^bearer +(\S+) *$/i.exec(headers.get("authorization") ?? "") ?? [];
    const given = await sha256(token ?? "");
    // All of them, each to its end: the time it takes tells nothing about the secrets.
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

/** Compares digests: where they first differ says nothing about the texts. */
function isSame(a: Uint8Array, b: Uint8Array): boolean {
  let difference = a.length ^ b.length;
  for (let i = 0; i < a.length; i++) difference |= (a[i] ?? 0) ^ (b[i] ?? 0);
  return difference === 0;
}
