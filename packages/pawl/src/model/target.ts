/** How callers name an instance. */
export type Target = { readonly workflow: string; readonly id: string };

/** One text for both names, neither of which has a control character. */
export function targetKey({ workflow, id }: Target): string {
  return `${workflow}\n${id}`;
}
