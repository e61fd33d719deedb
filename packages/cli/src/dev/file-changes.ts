import path from "node:path";
import { type FSWatcher, watch } from "chokidar";

/** Changes within this time count as one: editors write a file in several steps, and tools write many files at once. */
const TOGETHER_MS = 100;
const source = /\.(?:[cm]?[jt]sx?|json)$|(?:^|\/)\.env(?:\.[\w-]+)?$/;

/** Watches the files of a program. */
export class FileChanges {
  readonly #folder: string;
  #watcher: FSWatcher;
  #watched: string;
  #files = new Set<string>();
  #timer: NodeJS.Timeout | null = null;
  #arrived: (() => void) | null = null;

  constructor(folder: string) {
    this.#folder = folder;
    this.#watched = JSON.stringify([folder]);
    this.#watcher = this.#watch([folder]);
  }

  /** Follows these paths instead, relative to the folder; without any, the folder itself. */
  follow(paths: readonly string[] | undefined): void {
    const wanted = paths?.map((each) => path.resolve(this.#folder, each)) ?? [this.#folder];
    const text = JSON.stringify(wanted);
    if (text === this.#watched) return;
    this.#watched = text;
    void this.#watcher.close();
    this.#watcher = this.#watch(wanted);
  }

  /** Resolves with the files that have changed since the last time, as soon as there are any. */
  async next(): Promise<readonly string[]> {
    if (this.#files.size === 0 || this.#timer !== null) {
      await new Promise<void>((resolve) => (this.#arrived = resolve));
    }
    const files = Array.from(this.#files);
    this.#files.clear();
    return files;
  }

  #watch(paths: readonly string[]): FSWatcher {
    const watcher = watch([...paths], {
      ignoreInitial: true,
      ignored: (file, stats) =>
        isIgnored(path.relative(this.#folder, file), stats?.isFile() === true),
    });
    watcher.on("all", (_event, file) => this.#add(file));
    return watcher;
  }

  #add(file: string): void {
    if (!source.test(file)) return;
    this.#files.add(file);
    clearTimeout(this.#timer ?? undefined);
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#arrived?.();
    }, TOGETHER_MS);
  }
}

/** Tells whether to ignore a file. It is asked twice about each, the first time by its name alone. */
function isIgnored(file: string, isFile: boolean): boolean {
  const folders = file.split(path.sep);
  const name = folders.pop() ?? "";
  if (folders.some(isHidden)) return true;
  if (source.test(name)) return false;
  return isFile || isHidden(name);
}

function isHidden(name: string): boolean {
  return name === "node_modules" || /^\.[^.]/.test(name);
}
