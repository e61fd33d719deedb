import { Console } from "node:console";
import { once } from "node:events";
import type { Writable } from "node:stream";
import pc from "picocolors";
import type { Failure } from "../failure.js";
import { wire } from "./json.js";
import { visible } from "./text.js";

type Stream = Writable & { readonly isTTY?: boolean; readonly columns?: number };

/** The output of a command: answers go to standard output, everything else to standard error. */
export class Terminal {
  readonly json: boolean;
  readonly colors: ReturnType<typeof pc.createColors>;
  readonly #out: Stream;
  readonly #err: Stream;
  readonly #errColors: ReturnType<typeof pc.createColors>;

  constructor({ json }: { readonly json: boolean }) {
    this.json = json;
    this.#out = process.stdout;
    this.#err = process.stderr;
    this.colors = pc.createColors(isColorful(this.#out) && !json);
    this.#errColors = pc.createColors(isColorful(this.#err));
  }

  /** The width of the terminal; undefined where the output is not a terminal. */
  get width(): number | undefined {
    return this.#out.isTTY === true ? this.#out.columns : undefined;
  }

  async line(text = ""): Promise<void> {
    await this.write(`${text}\n`);
  }

  async lines(texts: readonly string[]): Promise<void> {
    if (texts.length > 0) await this.line(texts.join("\n"));
  }

  /** Writes text, and waits while the reader is slower. */
  async write(text: string): Promise<void> {
    if (!this.#out.write(text)) await once(this.#out, "drain");
  }

  /** Writes the answer for machines, as one document. */
  async answer(value: unknown): Promise<void> {
    await this.line(JSON.stringify(wire(value), null, 2));
  }

  /** Keeps the output of users' code away from an answer that a machine reads. */
  keepForAnswer(): void {
    if (this.json) globalThis.console = new Console({ stdout: this.#err, stderr: this.#err });
  }

  /** Tells something beside the answer, to people only. */
  note(text: string): void {
    if (!this.json) this.#err.write(`${this.#errColors.dim(text)}\n`);
  }

  fail(failure: Failure): void {
    const { code, message, hint } = failure;
    if (this.json) {
      const error = { code, message, ...(hint === undefined ? {} : { hint }) };
      this.#err.write(`${JSON.stringify({ error })}\n`);
      return;
    }
    const { red, dim, bold } = this.#errColors;
    this.#err.write(`${red(bold("error"))} ${paragraphs(message)} ${dim(`(${code})`)}\n`);
    if (hint !== undefined) this.#err.write(`\n${paragraphs(hint)}\n`);
  }

  /** Shows one line that overwrites itself while something takes long, if a person is looking. */
  progress(): Progress {
    const isShown = this.#err.isTTY === true && !this.json;
    return new Progress(isShown ? (text) => this.#err.write(text) : () => {});
  }

  async flush(): Promise<void> {
    for (const stream of [this.#out, this.#err]) {
      await new Promise<void>((resolve) => void stream.write("", () => resolve()));
    }
  }
}

const EVERY_MS = 100;

class Progress {
  readonly #write: (text: string) => void;
  #nextAtMs = performance.now() + EVERY_MS;
  #isDirty = false;

  constructor(write: (text: string) => void) {
    this.#write = write;
  }

  tell(text: string): void {
    if (performance.now() < this.#nextAtMs) return;
    this.#nextAtMs = performance.now() + EVERY_MS;
    this.#isDirty = true;
    this.#write(`\r\u001B[K${visible(text)}`);
  }

  clear(): void {
    if (this.#isDirty) this.#write("\r\u001B[K");
    this.#isDirty = false;
  }
}

function isColorful(stream: Stream): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR ?? "") === "" && TERM !== "dumb";
}

/** Keeps the line breaks of our own texts. */
function paragraphs(text: string): string {
  return text.split("\n").map(visible).join("\n");
}
