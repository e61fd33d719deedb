import { parseDurationMs, type InstanceStatus } from "pawl";
import { isTerminal } from "pawl/operations";
import { exitCode, Failure } from "../failure.js";
import { readValue } from "../input.js";
import type { Session } from "../session.js";
import { findWorkflow, type TargetInstance } from "../target.js";
import { outcome, statusWord } from "../terminal/status.js";
import { shellWord } from "../terminal/shell.js";

export type StartOptions = {
  readonly id?: string;
  readonly params?: string;
  /** How long to wait for the end; true to wait for ever. */
  readonly wait?: string | true;
};

export async function startCommand(
  session: Session,
  given: string,
  options: StartOptions,
): Promise<number> {
  const { terminal } = session;
  // A wrong duration is refused before anything is started.
  const waitMs = typeof options.wait === "string" ? milliseconds(options.wait) : undefined;
  const params = await readValue("--params", options.params, session);
  const { name, workflow } = await findWorkflow(await session.target(), given);
  const instance = await workflow.create({
    ...(options.id === undefined ? {} : { id: options.id }),
    ...(params === undefined ? {} : { params }),
  });
  const { id } = instance;
  if (options.wait === undefined) {
    if (terminal.json) await terminal.answer({ workflow: name, id });
    else await terminal.line(`started ${name} ${id}`);
    const show = `pawl show ${shellWord(name)} ${id}${session.placeOptions}`;
    terminal.note(`see how it goes: ${show}`);
    return exitCode.ok;
  }
  terminal.note(`started ${name} ${id}, waiting for its end`);
  const status = await ended(instance, waitMs);
  if (terminal.json) await terminal.answer({ workflow: name, id, ...status });
  else
    await terminal.line(
      `${statusWord(status.status, terminal.colors)} ${outcome(status, Infinity)}`,
    );
  return status.status === "complete" ? exitCode.ok : exitCode.failed;
}

/** Waits for the end, however it comes. Only a wait that was too short throws. */
async function ended(
  instance: TargetInstance,
  waitMs: number | undefined,
): Promise<InstanceStatus> {
  try {
    await instance.result({ timeout: waitMs });
  } catch (error) {
    const status = await instance.status();
    if (isTerminal(status.status)) return status;
    throw isTimeout(error) ? tooShort(instance.id, error) : error;
  }
  return instance.status();
}

function milliseconds(wait: string): number {
  return parseDurationMs(wait, { field: "--wait" });
}

function isTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === "ResultTimeoutError";
}

function tooShort(id: string, cause: unknown): Failure {
  return new Failure("failed", "RESULT_TIMEOUT", `instance "${id}" did not end in time`, {
    hint: "it goes on by itself, if a runner is at work (pawl dev, startRunner): pawl show tells how far it is",
    cause,
  });
}
