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

/** A body waits here until `<folder>/<gate>` exists. */
export type WorkParams = { readonly gate?: string } | undefined;

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
      return [await body("first"), await body("gated", event.payload?.gate), await body("last")];
    },
  });
