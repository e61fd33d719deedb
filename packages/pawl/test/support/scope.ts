/** Holds what a test opened, and closes all of it in reverse order, even after a failure. */
export class Scope {
  readonly #steps: (() => unknown)[] = [];

  defer(step: () => unknown): void {
    this.#steps.push(step);
  }

  async end(): Promise<unknown[]> {
    const failures: unknown[] = [];
    for (const step of this.#steps.splice(0).toReversed()) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    return failures;
  }

  /** Ends the scope, and throws the first failure. */
  async close(): Promise<void> {
    const [failure] = await this.end();
    if (failure !== undefined) throw failure;
  }
}

export async function inScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope();
  let result: T;
  try {
    result = await work(scope);
  } catch (error) {
    await scope.end(); // the first failure is the one worth reading
    throw error;
  }
  await scope.close();
  return result;
}
