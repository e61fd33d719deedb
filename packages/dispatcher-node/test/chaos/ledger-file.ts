import { closeSync, fsyncSync, openSync, readFileSync, writeSync } from "node:fs";
import { Ledger, type Entry } from "../../../pawl/test/sim/ledger.js";

/**
 * The lines that a body writes before and after its work. A line is on the disk before the body goes on, whatever happens
 * to its process.
 */
export type Line =
  | (Pick<Entry, "run" | "step" | "attempt" | "process" | "enteredAt"> & {
      readonly what: "entered";
      readonly token: string;
      /** Null means no limit. */
      readonly maxAttempts: number | null;
    })
  | { readonly what: "returned" | "failed" | "gave back"; readonly token: string };

export class LedgerFile {
  readonly #file: number;

  constructor(path: string) {
    this.#file = openSync(path, "a");
  }

  write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
    fsyncSync(this.#file);
  }

  close(): void {
    closeSync(this.#file);
  }
}

export function readLedger(path: string): Ledger {
  const ledger = new Ledger();
  const byToken = new Map<string, Entry>();
  // A process that was killed while it wrote leaves half a line, and its body had not begun.
  const whole = readFileSync(path, "utf8").split("\n").filter(isWhole);
  for (const line of whole.map((text) => JSON.parse(text) as Line)) {
    if (line.what === "entered") {
      const { run, step, attempt, process, enteredAt, maxAttempts } = line;
      const entry = { run, step, attempt, process, enteredAt };
      byToken.set(line.token, ledger.enter({ ...entry, maxAttempts: maxAttempts ?? Infinity }));
      continue;
    }
    const entry = byToken.get(line.token);
    if (entry === undefined) throw new Error(`nobody entered with token ${line.token}`);
    if (line.what === "returned") entry.token = line.token;
    else if (line.what === "failed") entry.failedAt = entry.enteredAt;
    else entry.wasGivenBack = true;
  }
  return ledger;
}

function isWhole(text: string): boolean {
  return text.startsWith("{") && text.endsWith("}");
}
