// This is the one comparison that tells `any` and `readonly` apart.
/* oxlint-disable typescript/no-unnecessary-type-parameters */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/* oxlint-enable typescript/no-unnecessary-type-parameters */

/** Compiles only if the value has exactly this type: `same<string>()(instance.id)`. */
export function same<Expected>(): <Actual>(
  value: Actual,
  ...verdict: Same<Expected, Actual> extends true ? [] : ["not the expected type", Expected]
) => void {
  return () => {};
}
