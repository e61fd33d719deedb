import { setTimeout as pause } from "node:timers/promises";
import type { HistoryEntry, HistoryStep, ListedInstance } from "pawl";
import { isTerminal, stepTraits } from "pawl/operations";
import type { CommandTarget } from "../target.js";
import { wire } from "../terminal/json.js";
import { outcome, problem, statusWord, valueText, waitText } from "../terminal/status.js";
import type { Terminal } from "../terminal/terminal.js";
import { duration, visible } from "../terminal/text.js";

const SHORTEST_REST_MS = 200;
/** A poll that takes long is made less often, so that polls take a tenth of the time. */
const LOOK_SHARE = 10;
/** How many of the newest instances of each workflow are followed. */
const FOLLOWED = 100;
const VALUE_SHOWN = 120;

type Seen = {
  runNumber: number;
  status: string;
  /** The cursor from which its history is read. Everything before it has ended and was told. */
  cursor: string | undefined;
  /** How each entry of that page was told last. */
  told: Map<string, Told>;
};

type Told = { readonly version: string; readonly failures: number };
type About = Pick<News, "workflow" | "id" | "runNumber">;

type News = {
  readonly at: Date;
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
  readonly text: string;
  readonly data: object;
};

/** Tells what happens to instances, in whichever process, by reading them again and again. */
export class LiveLog {
  readonly #target: CommandTarget;
  readonly #terminal: Terminal;
  readonly #seen = new Map<string, Seen>();
  readonly #notes: { readonly at: Date; readonly text: string }[] = [];
  readonly #over = new AbortController();

  constructor(target: CommandTarget, terminal: Terminal) {
    this.#target = target;
    this.#terminal = terminal;
  }

  /** Reads what there is already, which is not news. */
  async begin(): Promise<void> {
    await this.#look();
  }

  async follow(): Promise<void> {
    while (!this.#over.signal.aborted) {
      const since = performance.now();
      await this.#tell();
      const restMs = Math.max(SHORTEST_REST_MS, (performance.now() - since) * LOOK_SHARE);
      await pause(restMs, undefined, { signal: this.#over.signal }).catch(() => {});
    }
    await this.#tell();
  }

  /** Tells what the engine's log says of a step beside the news, in the order in which both happened. */
  note(text: string): void {
    this.#notes.push({ at: new Date(), text });
  }

  /** Ends after one more poll. */
  end(): void {
    this.#over.abort();
  }

  async #tell(): Promise<void> {
    const lookedAt = new Date();
    try {
      const news = await this.#look();
      const inOrder = news.toSorted((a, b) => a.at.getTime() - b.at.getTime());
      for (const each of inOrder) {
        this.#tellNotes(each.at);
        await this.#terminal.line(this.#line(each));
      }
    } catch {
      // The database is away. The runner reports that, and the next poll catches up.
    }
    this.#tellNotes(lookedAt);
  }

  /** Tells the notes up to a time, by which everything that led to them has been told. */
  #tellNotes(upTo: Date): void {
    const later = this.#notes.findIndex(({ at }) => at > upTo);
    const due = this.#notes.splice(0, later === -1 ? this.#notes.length : later);
    for (const { text } of due) this.#terminal.note(text);
  }

  #line({ at, workflow, id, runNumber, text, data }: News): string {
    if (this.#terminal.json) return JSON.stringify(wire({ at, workflow, id, runNumber, ...data }));
    const { dim, bold } = this.#terminal.colors;
    return `${dim(at.toISOString().slice(11, 23))}  ${visible(workflow)} ${bold(id)}  ${text}`;
  }

  async #look(): Promise<News[]> {
    const news: News[] = [];
    for (const { name } of await this.#target.registered()) {
      const { instances } = await this.#target.list(name, { pageSize: FOLLOWED });
      for (const instance of instances) news.push(...rising(await this.#lookAt(name, instance)));
    }
    return news;
  }

  async #lookAt(workflow: string, instance: ListedInstance): Promise<News[]> {
    const { id, runNumber, details } = instance;
    const key = `${id}\n${workflow}`;
    const before = this.#seen.get(key);
    const isSame = before?.runNumber === runNumber && before.status === details.status;
    if (isSame && isTerminal(details.status)) return [];
    const seen: Seen =
      before?.runNumber === runNumber
        ? before
        : { runNumber, status: "", cursor: undefined, told: new Map() };
    this.#seen.set(key, seen);
    const about = { workflow, id, runNumber };
    const news: News[] = [];
    if (before?.runNumber !== runNumber) {
      const text = runNumber === 1 ? "created" : `restarted: run ${runNumber}`;
      const at = runNumber === 1 ? instance.createdAt : (instance.startedAt ?? new Date());
      news.push({ ...about, at, text, data: { kind: "created" } });
    }
    // The history is read after the status, so that everything that led to that status is in it.
    news.push(...(await this.#entries(about, seen)));
    if (!isSame) {
      seen.status = details.status;
      if (isTerminal(details.status)) news.push(this.#end(about, instance));
    }
    return news;
  }

  #end(about: About, instance: ListedInstance): News {
    const { details, finishedAt } = instance;
    const word = statusWord(details.status, this.#terminal.colors);
    const text = `${word} ${outcome(details, VALUE_SHOWN)}`.trimEnd();
    return { ...about, at: finishedAt ?? new Date(), text, data: { kind: "status", ...details } };
  }

  async #entries(about: About, seen: Seen): Promise<News[]> {
    const news: News[] = [];
    const { workflow, id, runNumber } = about;
    for (;;) {
      const page = await this.#target.history(workflow, id, {
        runNumber,
        pageSize: 100,
        ...(seen.cursor === undefined ? {} : { cursor: seen.cursor }),
      });
      let events = 0;
      for (const entry of page.entries) {
        const key = entry.kind === "step" ? `step ${entry.ord}` : `event ${++events}`;
        news.push(...this.#changes(about, entry, seen.told.get(key)));
        seen.told.set(key, toldNow(entry));
      }
      if (!page.hasNextPage || page.cursor === undefined) return news;
      if (!page.entries.every(isOver)) return news;
      seen.cursor = page.cursor;
      seen.told.clear();
    }
  }

  /** Returns what is new about an entry, which as a rule is nothing. */
  #changes(about: About, entry: HistoryEntry, told: Told | undefined): News[] {
    const now = toldNow(entry);
    if (told?.version === now.version) return [];
    if (entry.kind === "event") {
      const text = `event ${entry.type} ${valueText(entry.payload, VALUE_SHOWN)}`.trimEnd();
      return [{ ...about, at: entry.createdAt, text, data: entry }];
    }
    const { colors } = this.#terminal;
    const name = colors.bold(visible(entry.name));
    const failures = failuresOf(entry)
      .slice(told?.failures ?? 0)
      .map(({ n, endedAt, startedAt, error }) => ({
        ...about,
        at: endedAt ?? startedAt,
        text: `${name}  ${colors.red(`attempt ${n} failed: ${problem(error, VALUE_SHOWN)}`)}`,
        data: { kind: "attempt", step: entry.name, n, startedAt, endedAt, error },
      }));
    const text = `${name}  ${this.#stepText(entry)}`;
    return [...failures, { ...about, at: timeOf(entry), text, data: entry }];
  }

  #stepText(step: HistoryStep): string {
    const { colors } = this.#terminal;
    const word = statusWord(step.status, colors);
    const n = step.attempts.length;
    if (step.status === "completed") {
      const took =
        step.endedAt === null
          ? ""
          : ` in ${duration(step.endedAt.getTime() - step.startedAt.getTime())}`;
      const attempts = n > 1 ? `, attempt ${n}` : "";
      const value =
        "result" in step && stepTraits(step.type).hasAttempts
          ? valueText(step.result, VALUE_SHOWN)
          : "";
      return `${word}${colors.dim(`${took}${attempts}${value === "" ? "" : ` → ${value}`}`)}`;
    }
    if (step.status === "errored") {
      const why = step.error === undefined ? "" : colors.red(problem(step.error, VALUE_SHOWN));
      return `${word} ${why}`.trimEnd();
    }
    if (step.wait !== undefined) return colors.yellow(waitText(step.wait));
    return `${word}${n > 1 ? colors.dim(`, attempt ${n}`) : ""}`;
  }
}

/**
 * Corrects times so that they rise in the order in which the code came by: a wait may begin a moment before its cause
 * is stored.
 */
function rising(news: readonly News[]): News[] {
  let latest = 0;
  return news.map((each) => {
    latest = Math.max(latest, each.at.getTime());
    return { ...each, at: new Date(latest) };
  });
}

function isOver(entry: HistoryEntry): boolean {
  return entry.kind === "event" || entry.status === "completed" || entry.status === "errored";
}

function failuresOf(step: HistoryStep) {
  return step.attempts.flatMap(({ error, ...rest }) =>
    error === undefined ? [] : [{ ...rest, error }],
  );
}

function toldNow(entry: HistoryEntry): Told {
  if (entry.kind === "event") return { version: "", failures: 0 };
  const version = `${entry.status} ${entry.attempts.length} ${entry.wait?.until?.getTime()}`;
  return { version, failures: failuresOf(entry).length };
}

/** Returns when that which is told of a step happened. */
function timeOf(step: HistoryStep): Date {
  const last = step.attempts.at(-1);
  return step.endedAt ?? last?.endedAt ?? last?.startedAt ?? step.startedAt;
}
