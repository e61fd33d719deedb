import { readValue } from "../input.js";
import type { Session } from "../session.js";
import { findWorkflow } from "../target.js";

export type SendOptions = { readonly payload?: string; readonly eventId?: string };

export async function sendCommand(
  session: Session,
  given: string,
  id: string,
  type: string,
  options: SendOptions,
): Promise<void> {
  const { terminal } = session;
  const payload = await readValue("--payload", options.payload, session);
  const { name, workflow } = await findWorkflow(await session.target(), given);
  const instance = await workflow.get(id);
  await instance.sendEvent({
    type,
    ...(payload === undefined ? {} : { payload }),
    ...(options.eventId === undefined ? {} : { id: options.eventId }),
  });
  if (terminal.json) return terminal.answer({ workflow: name, id, type });
  await terminal.line(`sent ${type} to ${name} ${id}`);
}
