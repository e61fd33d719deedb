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

/** The promise's outcome, unless the signal fires first. What was begun goes on, for others. */
export function unlessAborted<T>(promise: Promise<T>, signal: Signal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  const abort = membersOf(signal);
  return new Promise<T>((resolve, reject) => {
    const onAbort = (): void => reject(abort.reason);
    abort.addEventListener("abort", onAbort);
    if (abort.aborted) onAbort();
    promise.then(resolve, reject).finally(() => abort.removeEventListener("abort", onAbort));
  });
}
