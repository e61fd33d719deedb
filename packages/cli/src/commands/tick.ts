import type { TickOptions } from "pawl";
import type { Session } from "../session.js";
import { counted, duration } from "../terminal/text.js";

export async function tickCommand(
  session: Session,
  { maxInstances, maxSteps }: TickOptions,
): Promise<void> {
  const { terminal } = session;
  const target = await session.target();
  const progress = terminal.progress();
  const since = performance.now();
  const timer = setInterval(
    () => progress.tell(`running, ${duration(performance.now() - since)}`),
    200,
  );
  const result = await target.tick({ maxInstances, maxSteps }).finally(() => {
    clearInterval(timer);
    progress.clear();
  });
  if (terminal.json) return terminal.answer(result);
  const { processed, nextWakeInMs } = result;
  const next =
    nextWakeInMs === null
      ? "nothing more is due"
      : nextWakeInMs <= 0
        ? "more is due now"
        : `the next is due in ${duration(nextWakeInMs)}`;
  await terminal.line(`${counted(processed, "run")} processed; ${next}`);
}
