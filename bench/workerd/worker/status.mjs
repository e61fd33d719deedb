// @ts-check

/** @typedef {{ status(): Promise<{ status: string, output?: unknown }> }} Instance */

/**
 * Asks until it is complete, and returns its output.
 * @param {Instance} instance
 * @param {number} intervalMs
 */
export async function completed(instance, intervalMs) {
  for (;;) {
    const { status, output } = await instance.status();
    if (status === "complete") return output;
    if (status === "errored") throw new Error("it failed");
    await scheduler.wait(intervalMs);
  }
}
