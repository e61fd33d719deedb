/** The status words of an instance, as on Cloudflare. People store and compare them: they never change. */
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

export type InstanceStatusName = (typeof instanceStatusNames)[number];

/** The states an instance can be in. `unknown` is what a reader shows for a word it does not know. */
export type InstanceState = Exclude<InstanceStatusName, "unknown">;

export const terminalStates = ["complete", "errored", "terminated"] as const;
export type TerminalState = (typeof terminalStates)[number];

export const liveStates = ["queued", "running", "waiting", "waitingForPause", "paused"] as const;
export type LiveState = (typeof liveStates)[number];

/** Nothing but `restart` leads out of a terminal state. */
export function isTerminal(status: InstanceStatusName): status is TerminalState {
  return (terminalStates as readonly InstanceStatusName[]).includes(status);
}

export function isInstanceStatusName(word: unknown): word is InstanceStatusName {
  return (instanceStatusNames as readonly unknown[]).includes(word);
}
