import { inputFields, type InstanceStatusName, type OperationName } from "pawl/operations";
import { exitCode, failureOf } from "../failure.js";
import type { Session } from "../session.js";
import { findWorkflow, type FoundWorkflow } from "../target.js";
import { statusWord } from "../terminal/status.js";

type ControlResult =
  | { readonly id: string; readonly status: InstanceStatusName }
  | { readonly id: string; readonly error: { readonly code: string; readonly message: string } };

/** Does one operation to several instances, one after the other. An instance that fails does not stop the others. */
export async function controlCommand(
  session: Session,
  operation: OperationName,
  given: string,
  ids: readonly string[],
  options: Readonly<Record<string, unknown>>,
): Promise<number> {
  const { terminal } = session;
  const found = await findWorkflow(await session.target(), given);
  const input = inputOf(operation, options);
  const answers: ControlResult[] = [];
  let code: number = exitCode.ok;
  for (const id of ids) {
    try {
      const status = await act(found, operation, id, input);
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

async function act(
  { workflow }: FoundWorkflow,
  operation: OperationName,
  id: string,
  input: object | undefined,
): Promise<InstanceStatusName> {
  const instance = await workflow.get(id);
  const method = instance[operation] as (input?: object) => Promise<unknown>;
  await method.call(instance, input);
  return (await instance.status()).status;
}

/** Returns the command's options that belong to the operation; undefined if it takes none. */
function inputOf(
  operation: OperationName,
  options: Readonly<Record<string, unknown>>,
): object | undefined {
  const fields = Object.keys(inputFields(operation));
  if (fields.length === 0) return undefined;
  const given = fields.filter((field) => options[field] !== undefined);
  return Object.fromEntries(given.map((field) => [field, options[field]]));
}
