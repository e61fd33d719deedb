import type { CreateOptions } from "../authoring/bindings.js";
import type { Run } from "../engine/run.js";
import { instanceOperations } from "../instances/operations.js";

/**
 * Returns bindings for code that is replayed without a store. They create children with the ids that these had. A child
 * has an id and nothing else: each of its methods rejects.
 */
export function replayBindings(run: Pick<Run, "nextOrigin">): unknown {
  const create = async (options: CreateOptions = {}): Promise<unknown> => {
    return childOf(options.id ?? run.nextOrigin(null).id);
  };
  const binding = {
    create,
    createBatch: (batch: readonly CreateOptions[]) => Promise.all(batch.map(create)),
    get: async (id: string) => childOf(id),
  };
  return new Proxy({}, { get: () => binding });
}

function childOf(id: string): unknown {
  const methods = [...Object.keys(instanceOperations), "result", "sendEvent"];
  const refusals = methods.map((method) => [
    method,
    async () => {
      throw new Error(`a replay has no store: call ${method}() in a step, or give \`workflows\``);
    },
  ]);
  return { id, ...Object.fromEntries(refusals) };
}
