import type { History, HistoryEntry, HistoryEvent, HistoryStep } from "pawl";
import type { Session } from "../session.js";
import { findWorkflow, type CommandTarget } from "../target.js";
import {
  outcome,
  problem,
  statusWord,
  valueText,
  waitText,
  type StatusWord,
} from "../terminal/status.js";
import type { Terminal } from "../terminal/terminal.js";
import { ago, counted, duration, visible } from "../terminal/text.js";

export type ShowOptions = {
  readonly run?: number;
  readonly limit: number;
  readonly all?: boolean;
  readonly cursor?: string;
  readonly values?: boolean;
};

const PAGE = 100;

export async function showCommand(
  session: Session,
  workflow: string,
  id: string,
  options: ShowOptions,
): Promise<void> {
  const { terminal } = session;
  const target = await session.target();
  const { name, workflow: binding } = await findWorkflow(target, workflow);
  const instance = await binding.get(id);
  const status = await instance.status();
  const history = await read(target, name, id, options, terminal);
  if (terminal.json) return terminal.answer({ workflow: name, id, ...status, ...history });
  await terminal.lines(
    new HistoryPageOf(terminal, options.values ?? false).lines(name, id, history),
  );
  if (history.hasNextPage) {
    terminal.note(`there is more: --all, the next page: --cursor ${history.cursor}`);
  }
}

async function read(
  target: CommandTarget,
  workflow: string,
  id: string,
  options: ShowOptions,
  terminal: Terminal,
): Promise<History> {
  const progress = terminal.progress();
  const entries: HistoryEntry[] = [];
  let left = options.all === true ? Infinity : options.limit;
  let cursor = options.cursor;
  let runNumber = options.run;
  for (;;) {
    const page = await target.history(workflow, id, {
      pageSize: Math.min(PAGE, left),
      ...(runNumber === undefined ? {} : { runNumber }),
      ...(cursor === undefined ? {} : { cursor }),
    });
    entries.push(...page.entries);
    left -= page.entries.length;
    progress.tell(`${entries.length} read`);
    ({ cursor, runNumber } = { cursor: page.cursor, ...page });
    if (page.hasNextPage && left > 0 && cursor !== undefined) continue;
    progress.clear();
    return { ...page, entries };
  }
}

/** The history of a run for people: one line for each thing that happened, with its outcome below. */
class HistoryPageOf {
  readonly #terminal: Terminal;
  readonly #maxLength: number;

  constructor(terminal: Terminal, showsWhole: boolean) {
    this.#terminal = terminal;
    this.#maxLength = showsWhole ? Infinity : Math.max(40, (terminal.width ?? 120) - 32);
  }

  lines(workflow: string, id: string, history: History): string[] {
    const { bold, dim } = this.#terminal.colors;
    const run = history.runs.find(({ runNumber }) => runNumber === history.runNumber);
    const names = new Map(history.entries.filter(isStep).map(({ ord, name }) => [ord, name]));
    const isOver = run !== undefined && run.finishedAt !== null;
    const entries = history.entries.flatMap((entry) =>
      isStep(entry) ? this.#step(entry, isOver) : this.#event(entry, names, isOver),
    );
    return [
      `${bold(visible(workflow))} ${bold(id)}  ${this.#status(run?.status ?? "unknown")}${this.#times(run)}`,
      ...this.#outcome(run),
      ...this.#runs(history),
      "",
      ...(entries.length === 0 ? [dim(isOver ? "no step" : "no step yet")] : entries),
    ];
  }

  #status(word: StatusWord): string {
    return statusWord(word, this.#terminal.colors);
  }

  #times(run: History["runs"][number] | undefined): string {
    if (run?.startedAt == null) return "";
    const end = run.finishedAt;
    const took = end === null ? "" : `, took ${duration(end.getTime() - run.startedAt.getTime())}`;
    return this.#terminal.colors.dim(`  started ${ago(run.startedAt)}${took}`);
  }

  #outcome(run: History["runs"][number] | undefined): string[] {
    if (run === undefined) return [];
    const text = outcome(run, this.#maxLength);
    if (text === "") return [];
    const { red, dim } = this.#terminal.colors;
    return [run.error === undefined ? `${dim("output")} ${text}` : red(text)];
  }

  #runs({ runs, runNumber }: History): string[] {
    if (runs.length < 2) return [];
    const told = runs.map((run) => `${run.runNumber} ${this.#status(run.status)}`).join(", ");
    return [`run ${runNumber} of ${runs[0]?.runNumber}: ${told} (--run <n> shows another)`];
  }

  #step(step: HistoryStep, isOver: boolean): string[] {
    const { bold, dim } = this.#terminal.colors;
    const count = step.count > 1 ? ` (call ${step.count})` : "";
    const attempts =
      step.attempts.length > 1 ? `, ${counted(step.attempts.length, "attempt")}` : "";
    const took =
      step.endedAt === null
        ? ""
        : ` in ${duration(step.endedAt.getTime() - step.startedAt.getTime())}`;
    const what = `${step.type.padEnd(12)}  ${bold(visible(step.name))}${count}`;
    return [
      `${clock(step.startedAt)}  ${what}  ${this.#status(step.status)}${dim(took + attempts)}`,
      ...this.#attempts(step),
      ...this.#result(step),
      ...(isOver ? this.#unended(step) : this.#wait(step)),
    ];
  }

  /** Shows the attempts that failed. A step that succeeds at once needs no line for its attempt. */
  #attempts({ attempts, error }: HistoryStep): string[] {
    const failed = attempts.filter((attempt) => attempt.error !== undefined);
    if (failed.length === 0 && error !== undefined) return [this.#under(this.#red(error))];
    return failed.map((attempt) =>
      this.#under(`attempt ${attempt.n}: ${this.#red(attempt.error)}`),
    );
  }

  #red(error: HistoryStep["error"]): string {
    return error === undefined ? "" : this.#terminal.colors.red(problem(error, this.#maxLength));
  }

  #result(step: HistoryStep): string[] {
    const text = "result" in step ? valueText(step.result, this.#maxLength) : "";
    return text === "" ? [] : [this.#under(this.#terminal.colors.dim(`→ ${text}`))];
  }

  /** Shows that a step has not ended. Its run is over, so nobody needs to know when the step would have gone on. */
  #unended({ endedAt }: HistoryStep): string[] {
    if (endedAt !== null) return [];
    return [this.#under(this.#terminal.colors.dim("the run ended before this step did"))];
  }

  #wait({ wait }: HistoryStep): string[] {
    return wait === undefined ? [] : [this.#under(this.#terminal.colors.yellow(waitText(wait)))];
  }

  #event(event: HistoryEvent, names: ReadonlyMap<number, string>, isOver: boolean): string[] {
    const { bold, dim } = this.#terminal.colors;
    const { consumedByStep: by } = event;
    const taken =
      by === null
        ? `not taken${isOver ? "" : " yet"}`
        : `taken by ${names.get(by) === undefined ? `step ${by}` : `"${visible(names.get(by) ?? "")}"`}`;
    const payload = valueText(event.payload, this.#maxLength);
    return [
      `${clock(event.createdAt)}  ${"event".padEnd(12)}  ${bold(visible(event.type))}  ${dim(taken)}`,
      ...(payload === "" ? [] : [this.#under(dim(payload))]),
    ];
  }

  #under(text: string): string {
    return `${" ".repeat(clockWidth + 16)}${text}`;
  }
}

function isStep(entry: HistoryEntry): entry is HistoryStep {
  return entry.kind === "step";
}

const clockWidth = "2026-01-01 00:00:00.000Z".length;

/** Shows a time to the millisecond in UTC, as the database keeps it. */
function clock(at: Date): string {
  return at.toISOString().replace("T", " ");
}
