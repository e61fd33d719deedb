import { quote } from "../quote.js";

const identifier = /^[A-Za-z_$][\w$]{0,39}$/;
const endsShown = 6;

/** Returns a place inside a value in words, such as `$.customer.tags[3]`. A long path loses its middle. */
export function pathText(
  containers: readonly object[],
  keys: readonly (string | number)[],
  depth: number,
): string {
  const parts: string[] = [];
  for (let i = 0; i < depth; i++) {
    if (depth > 2 * endsShown && i >= endsShown && i < depth - endsShown) continue;
    if (depth > 2 * endsShown && i === depth - endsShown) parts.push("…");
    parts.push(part(containers[i], keys[i]));
  }
  return `$${parts.join("")}`;
}

function part(container: object | undefined, key: string | number | undefined): string {
  if (typeof key !== "string") return `[${key}]`;
  if (container instanceof Map || container instanceof Set) return key; // the writer has put it into words already
  return identifier.test(key) ? `.${key}` : `[${quote(key)}]`;
}
