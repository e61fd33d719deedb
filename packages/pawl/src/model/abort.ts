declare global {
  // Merges with the AbortSignal of the user's own types: DOM, Node or Workers, of which the domain knows none.
  interface AbortSignal {}
}

/** The runtime's own `AbortSignal`. */
export type Signal = AbortSignal;

/** What Pawl uses of it. */
export interface SignalMembers {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

export function membersOf(signal: Signal): SignalMembers {
  return signal as SignalMembers;
}

export function throwIfAborted(signal: Signal | undefined): void {
  if (signal === undefined) return;
  const { aborted, reason } = membersOf(signal);
  if (aborted) throw reason;
}

declare const AbortController: new () => Aborter;

export interface Aborter {
  readonly signal: Signal;
  abort(reason: unknown): void;
}

export function newAborter(): Aborter {
  return new AbortController();
}
