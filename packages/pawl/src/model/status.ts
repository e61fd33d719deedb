/** The status words of an instance, the same as Cloudflare's. People store and compare them, so they never change. */
export const instanceStatusNames = [
  "queued",
  "running",
  "waiting",
  "waitingForPause",
  "paused",
  "complete",
  "errored",
  "terminated",
  "unknown",
] as const;

/**
 * The status of an instance. `queued`, `running`, `waiting`, `waitingForPause` and `paused` instances are live;
 * `complete`, `errored` and `terminated` ones have ended. `unknown` stands for a word of a newer version.
 */
export type InstanceStatusName = (typeof instanceStatusNames)[number];

/** The states that an instance can be in. A reader shows `unknown` for a word that it does not know. */
export type InstanceState = Exclude<InstanceStatusName, "unknown">;

export const terminalStates = ["complete", "errored", "terminated"] as const;
export type TerminalState = (typeof terminalStates)[number];

export const liveStates = ["queued", "running", "waiting", "waitingForPause", "paused"] as const;
export type LiveState = (typeof liveStates)[number];

/** Whether an instance has ended. Only `restart` leads out of a terminal state. */
export function isTerminal(status: InstanceStatusName): status is TerminalState {
  return (terminalStates as readonly InstanceStatusName[]).includes(status);
}

export function isInstanceStatusName(word: unknown): word is InstanceStatusName {
  return (instanceStatusNames as readonly unknown[]).includes(word);
}
