import { setTimeout as pause } from "node:timers/promises";
import { defineWorkflow, type WorkflowStep } from "pawl";

/** One line of the ledger: a body that began, or saw its signal. */
export type Trace = {
  readonly pid: number;
  readonly id: string;
  readonly step: string;
  readonly attempt: number;
  readonly what: "began" | "aborted";
};

export type WorkParams =
  | {
      /** A body waits until `<folder>/<gate>` exists. */
      readonly gate?: string;
      /** The number of further steps, with naps between them. */
      readonly more?: number;
    }
  | undefined;

export const workflow = (trace: (line: Trace) => void, isOpen: (gate: string) => boolean) =>
  defineWorkflow({
    name: "work",
    async run(event: { payload: WorkParams; instanceId: string }, step: WorkflowStep) {
      const id = event.instanceId;
      const body = (name: string, gate?: string): Promise<string> =>
        step.do(name, { retries: { limit: 5, delay: 0 } }, async ({ attempt, signal }) => {
          const line = { pid: process.pid, id, step: name, attempt };
          trace({ ...line, what: "began" });
          signal.addEventListener("abort", () => trace({ ...line, what: "aborted" }));
          if (gate !== undefined) while (!isOpen(gate)) await pause(5);
          return name;
        });
      const names = [await body("first"), await body("gated", event.payload?.gate)];
      for (let n = 1; n <= (event.payload?.more ?? 0); n++) {
        names.push(await body(`more ${n}`));
        await step.sleep(`nap ${n}`, 20);
      }
      return [...names, await body("last")];
    },
  });
