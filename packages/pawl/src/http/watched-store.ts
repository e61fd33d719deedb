import type { Target } from "../store/records.js";
import type { Store } from "../store/store.js";
import type { Watchers } from "./watchers.js";

/** The same store; what is written through it is told to those who watch. */
export function watchedStore<Tx>(store: Store<Tx>, watchers: Watchers): Store<Tx> {
  async function told<T>(target: Target, write: Promise<T>): Promise<T> {
    const answer = await write;
    watchers.told(target);
    return answer;
  }
  return {
    ...store,
    async commit(parts) {
      const answers = await store.commit(parts);
      watchers.toldRuns(parts);
      return answers;
    },
    pause: (target) => told(target, store.pause(target)),
    resume: (target) => told(target, store.resume(target)),
    terminate: (target, operationId) => told(target, store.terminate(target, operationId)),
    restart: (target, operationId) => told(target, store.restart(target, operationId)),
  };
}
