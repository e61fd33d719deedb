import type { Session } from "../session.js";
import { counted } from "../terminal/text.js";

export async function migrateCommand(
  session: Session,
  { dryRun }: { readonly dryRun?: boolean },
): Promise<void> {
  const { terminal } = session;
  const { pawl } = await session.config();
  const plan = await pawl.options.store.planMigration();
  const { from, to, statements } = plan;
  if (dryRun !== true) {
    if (statements.length > 0)
      terminal.note(
        `from schema version ${from} to ${to}: ${counted(statements.length, "statement")}`,
      );
    await pawl.migrate();
  }
  if (terminal.json) return terminal.answer({ ...plan, applied: dryRun !== true });
  if (statements.length === 0) return terminal.line(`up to date: schema version ${to}`);
  if (dryRun === true) return terminal.lines(statements.map((statement) => `${statement};`));
  await terminal.lines([...changes(statements), `migrated to schema version ${to}`]);
}

/** Picks out what a person wants to know of the statements: which tables and indexes they make. */
function changes(statements: readonly string[]): string[] {
  return statements.flatMap((statement) => {
    const made = /^CREATE (?:UNIQUE )?(TABLE|INDEX)(?: IF NOT EXISTS)? (\S+)/i.exec(statement);
    if (made !== null) return [`  made ${made[1]?.toLowerCase()} ${made[2]}`];
    const altered = /^(ALTER|DROP) (TABLE|INDEX) (\S+)/i.exec(statement);
    return altered === null ? [] : [`  ${altered[0].toLowerCase()}`];
  });
}
