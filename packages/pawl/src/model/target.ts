/** How callers name an instance. */
export type Target = { readonly workflow: string; readonly id: string };

/** One text for both names, neither of which has a control character. */
export function targetKey({ workflow, id }: Target): string {
  return `${workflow}\n${id}`;
}

/** Which run, step and call a child comes from, and the id that it gets if the code gives it none. */
export type ChildOrigin = { readonly origin: string; readonly id: string };
