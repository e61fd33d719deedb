import { writeFile } from "node:fs/promises";
import path from "node:path";
import {
  exportHistoryOf,
  replay as replayHistory,
  type ExportedHistory,
  type ReplayResult,
} from "pawl/testing";
import type { AnyPawl } from "../config.js";
import { exitCode, Failure } from "../failure.js";
import { readHistoryFile } from "../input.js";
import type { Session } from "../session.js";
import { findWorkflow, inProcess } from "../target.js";
import type { Terminal } from "../terminal/terminal.js";
import { counted, visible } from "../terminal/text.js";

export type ReplayCommandOptions = {
  readonly file?: readonly string[];
  readonly run?: number;
  readonly save?: string;
  readonly limit: number;
  readonly all?: boolean;
};

type ReplayAnswer = {
  readonly workflow: string;
  readonly id: string;
  readonly runNumber: number;
  readonly steps: number;
  readonly outcome: "follows" | "diverges";
  readonly message?: string;
  readonly recorded?: unknown;
  readonly requested?: unknown;
  readonly added?: readonly unknown[];
};

const PAGE = 100;

/** Runs the config's code against recorded histories. No step's body is called, and nothing is written. */
export async function replayCommand(
  session: Session,
  workflow: string | undefined,
  ids: readonly string[],
  options: ReplayCommandOptions,
): Promise<number> {
  if ((workflow === undefined) === (options.file === undefined)) {
    throw new Failure(
      "usage",
      "INVALID_USAGE",
      "replay takes a workflow, or --file with exported histories",
      {
        hint: "for instance: pawl replay order order-1    pawl replay order --all    pawl replay --file history.json",
      },
    );
  }
  if (options.save !== undefined && ids.length !== 1) {
    throw new Failure("usage", "INVALID_USAGE", "--save takes the history of one instance", {
      hint: "for instance: pawl replay order order-1 --save history.json",
    });
  }
  const { terminal } = session;
  const { pawl } = await session.config();
  const histories =
    workflow === undefined
      ? fromFiles(session, options.file ?? [])
      : fromStore(pawl, workflow, ids, options);
  const answers: ReplayAnswer[] = [];
  const progress = terminal.progress();
  for await (const history of histories) {
    if (options.save !== undefined) await save(session, options.save, history);
    const answer = await replayed(pawl, history);
    progress.clear();
    if (!terminal.json) await tell(terminal, answer);
    answers.push(answer);
    progress.tell(`${answers.length} replayed`);
  }
  progress.clear();
  const diverging = answers.filter(({ outcome }) => outcome === "diverges").length;
  if (terminal.json) await terminal.answer({ replays: answers });
  else if (answers.length !== 1) {
    terminal.note(`${answers.length} replayed, ${diverging} diverging`);
  }
  return diverging > 0 ? exitCode.failed : exitCode.ok;
}

async function* fromFiles(
  session: Session,
  files: readonly string[],
): AsyncGenerator<ExportedHistory> {
  for (const file of files) yield checked(await readHistoryFile(file, session), file);
}

function checked(given: unknown, file: string): ExportedHistory {
  const isHistory =
    typeof given === "object" &&
    given !== null &&
    Reflect.get(given, "format") === 1 &&
    typeof Reflect.get(given, "workflow") === "string" &&
    typeof Reflect.get(given, "id") === "string" &&
    Array.isArray(Reflect.get(given, "steps"));
  if (isHistory) return given as ExportedHistory;
  throw new Failure("usage", "INVALID_INPUT", `${file} is no exported history of format 1`, {
    hint: "export one: pawl replay <workflow> <id> --save history.json",
  });
}

async function* fromStore(
  pawl: AnyPawl,
  given: string,
  ids: readonly string[],
  { run, limit, all }: ReplayCommandOptions,
): AsyncGenerator<ExportedHistory> {
  const target = inProcess({ pawl });
  const { name } = await findWorkflow(target, given);
  const runNumber = run === undefined ? {} : { runNumber: run };
  for (const id of ids) yield exportHistoryOf(pawl, name, id, runNumber);
  if (ids.length > 0) return;
  let left = all === true ? Infinity : limit;
  let cursor: string | undefined;
  do {
    const page = await target.list(name, {
      pageSize: Math.min(PAGE, left),
      ...(cursor === undefined ? {} : { cursor }),
    });
    for (const { id } of page.instances) yield exportHistoryOf(pawl, name, id);
    left -= page.instances.length;
    cursor = page.hasNextPage ? page.cursor : undefined;
  } while (cursor !== undefined && left > 0);
}

async function save(session: Session, file: string, history: ExportedHistory): Promise<void> {
  const to = path.resolve(session.cwd, file);
  try {
    await writeFile(to, `${JSON.stringify(history, null, 2)}\n`);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Failure("failed", "NOT_SAVED", `the history cannot be saved: ${reason}`);
  }
  session.terminal.note(`saved to ${file}`);
}

async function replayed({ options }: AnyPawl, history: ExportedHistory): Promise<ReplayAnswer> {
  const { workflow, id, runNumber, steps } = history;
  const entry = Object.values(options.workflows).find(({ name }) => name === workflow);
  if (entry === undefined) {
    throw new Failure(
      "notFound",
      "WORKFLOW_NOT_FOUND",
      `there is no workflow "${workflow}" in the config`,
    );
  }
  const about = { workflow, id, runNumber, steps: steps.length };
  const { env, codec, stepDefaults } = options;
  try {
    const result: ReplayResult = await replayHistory(history, entry, { env, codec, stepDefaults });
    return { ...about, outcome: "follows", added: result.added };
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "DivergenceError") throw unreadable(id, error);
    const { recorded, requested } = error as Error & Pick<ReplayAnswer, "recorded" | "requested">;
    return { ...about, outcome: "diverges", message: error.message, recorded, requested };
  }
}

/**
 * Makes the failure of a history that cannot be read. Since no step's body is called, any other error comes from the
 * history.
 */
function unreadable(id: string, cause: unknown): Failure {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new Failure("usage", "INVALID_INPUT", `this is no exported history of ${id}: ${reason}`, {
    cause,
  });
}

async function tell(terminal: Terminal, answer: ReplayAnswer): Promise<void> {
  const { green, red, dim } = terminal.colors;
  const what = `${answer.workflow} ${answer.id}`;
  if (answer.outcome === "diverges") {
    await terminal.line(`${red("diverges")}  ${what}  ${visible(answer.message ?? "")}`);
    return;
  }
  const added = answer.added?.length ?? 0;
  const beyond = added === 0 ? "" : `, and ${counted(added, "step")} beyond`;
  await terminal.line(
    `${green("follows")}   ${what}  ${dim(counted(answer.steps, "step") + beyond)}`,
  );
}
