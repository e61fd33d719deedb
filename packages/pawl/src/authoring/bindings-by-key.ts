/** Bindings whose keys only the other side knows: every key is a binding until it is used. Each is made once. */
export function bindingsByKey<Binding>(
  make: (key: string) => Binding,
): Readonly<Record<string, Binding>> {
  const made = new Map<string, Binding>();
  return new Proxy(
    {},
    {
      get(_, key) {
        // A `then` would make the bindings look like a promise.
        if (typeof key !== "string" || key === "then") return undefined;
        const binding = made.get(key) ?? make(key);
        made.set(key, binding);
        return binding;
      },
    },
  );
}
