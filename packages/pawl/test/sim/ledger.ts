/** The events outside of the engine: every entry of a body, and how it left. */
export type Entry = {
  readonly run: string;
  readonly step: string;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly process: string;
  readonly enteredAt: number;
  /** The value that the body returned: a token of its own, so that no other entry can be taken for it. */
  token: string | null;
  failedAt: number | null;
  /** Whether a stop cut it off, which costs no attempt. */
  wasGivenBack: boolean;
  /** Whether a later owner could not know of it: the exception of decision D58. */
  wasUnknowable: boolean;
};

export class Ledger {
  readonly entries: Entry[] = [];

  enter(entry: Omit<Entry, "token" | "failedAt" | "wasGivenBack" | "wasUnknowable">): Entry {
    const later = { token: null, failedAt: null, wasGivenBack: false, wasUnknowable: false };
    const full = { ...entry, ...later };
    this.entries.push(full);
    return full;
  }

  of(run: string, step: string): Entry[] {
    return this.entries.filter((entry) => entry.run === run && entry.step === step);
  }
}
