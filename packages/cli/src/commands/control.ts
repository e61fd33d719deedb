import { exitCode, failureOf } from "../failure.js";
import type { Session } from "../session.js";
import { findWorkflow, type FoundWorkflow } from "../target.js";
import { statusWord } from "../terminal/status.js";

export type ControlVerb = "pause" | "resume" | "terminate" | "restart";

type ControlResult =
  | { readonly id: string; readonly status: string }
  | { readonly id: string; readonly error: { readonly code: string; readonly message: string } };

/** Each id for itself: one that cannot be had does not stop the others. */
export async function controlCommand(
  session: Session,
  verb: ControlVerb,
  given: string,
  ids: readonly string[],
): Promise<number> {
  const { terminal } = session;
  const found = await findWorkflow(await session.target(), given);
  const answers: ControlResult[] = [];
  let code: number = exitCode.ok;
  for (const id of ids) {
    try {
      const status = await act(found, verb, id);
      answers.push({ id, status });
      if (!terminal.json) {
        await terminal.line(`${found.name} ${id} ${statusWord(status, terminal.colors)}`);
      }
    } catch (error) {
      if (ids.length === 1) throw error;
      const failure = failureOf(error);
      if (!terminal.json) terminal.fail(failure);
      answers.push({ id, error: { code: failure.code, message: failure.message } });
      code ||= failure.exit;
    }
  }
  if (terminal.json) await terminal.answer({ workflow: found.name, instances: answers });
  return code;
}

async function act({ workflow }: FoundWorkflow, verb: ControlVerb, id: string): Promise<string> {
  const instance = await workflow.get(id);
  await instance[verb]();
  return (await instance.status()).status;
}
