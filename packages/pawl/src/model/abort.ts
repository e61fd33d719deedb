declare global {
  // This merges with the AbortSignal of whichever types the user's program has (DOM, Node or Workers). The domain is
  // compiled with none of them.
  interface AbortSignal {}
}

/** The runtime's own `AbortSignal`. */
export type Signal = AbortSignal;

/** The members of an `AbortSignal` that Pawl uses. */
export interface SignalMembers {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Returns the signal itself, typed with the members that Pawl uses. */
export function membersOf(signal: Signal): SignalMembers {
  return signal as SignalMembers;
}

/** Throws the signal's reason if the signal has fired. */
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

/**
 * Settles as the promise does, or rejects with the signal's reason if the signal fires first. The work behind the
 * promise is not stopped: other callers may wait for it too.
 */
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
