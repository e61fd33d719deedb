import type { InstanceList, InstanceStatusName, ListedInstance, ListOptions } from "pawl";
import type { Session } from "../session.js";
import { findWorkflow, type CommandTarget } from "../target.js";
import { outcome, statusWord } from "../terminal/status.js";
import { table } from "../terminal/table.js";
import { wire } from "../terminal/json.js";
import { ago, counted, duration } from "../terminal/text.js";

export type ListCommandOptions = {
  readonly status?: InstanceStatusName;
  readonly order: "newest" | "oldest";
  readonly limit: number;
  readonly all?: boolean;
  readonly cursor?: string;
};

type Listed = ListedInstance & { readonly workflow: string };
type Batch = {
  readonly instances: readonly Listed[];
  readonly cursor?: string;
  readonly hasNextPage: boolean;
};

const PAGE = 100;

/** Lists the instances of one workflow, or of all. */
export async function listCommand(
  session: Session,
  workflow: string | undefined,
  options: ListCommandOptions,
): Promise<void> {
  const target = await session.target();
  const batches =
    workflow === undefined
      ? ofAll(target, options)
      : ofOne(target, (await findWorkflow(target, workflow)).name, options);
  return session.terminal.json
    ? writeJson(session, batches)
    : writeTable(session, batches, workflow);
}

/** Reads the instances of one workflow, page by page, until there are enough. */
async function* ofOne(
  target: CommandTarget,
  workflow: string,
  { status, order, limit, all, cursor }: ListCommandOptions,
): AsyncGenerator<Batch> {
  let left = all === true ? Infinity : limit;
  let next = cursor;
  while (left > 0) {
    const page: InstanceList = await target.list(workflow, {
      order,
      pageSize: Math.min(PAGE, left),
      ...(status === undefined ? {} : { status }),
      ...(next === undefined ? {} : { cursor: next }),
    } satisfies ListOptions);
    left -= page.instances.length;
    next = page.hasNextPage ? page.cursor : undefined;
    yield { ...page, instances: page.instances.map((each) => ({ workflow, ...each })) };
    if (next === undefined) return;
  }
}

/**
 * Reads the instances of all workflows: with a limit, the first of all of them together; without one, workflow by
 * workflow.
 */
async function* ofAll(target: CommandTarget, options: ListCommandOptions): AsyncGenerator<Batch> {
  const names = (await target.registered()).map(({ name }) => name);
  if (options.all === true) {
    for (const name of names) yield* ofOne(target, name, options);
    return;
  }
  const found: Listed[] = [];
  let hasMore = false;
  for (const name of names) {
    for await (const { instances, hasNextPage } of ofOne(target, name, options)) {
      found.push(...instances);
      if (!hasNextPage) continue;
      hasMore = true;
    }
  }
  const sign = options.order === "newest" ? -1 : 1;
  const sorted = found.toSorted((a, b) => sign * (a.createdAt.getTime() - b.createdAt.getTime()));
  yield {
    instances: sorted.slice(0, options.limit),
    hasNextPage: hasMore || sorted.length > options.limit,
  };
}

/** Writes instances as they come, so that no list is too long for memory. */
async function writeJson(session: Session, batches: AsyncIterable<Batch>): Promise<void> {
  const { terminal } = session;
  let end: Batch = { instances: [], hasNextPage: false };
  let separator = "\n";
  // Nothing is written before the first answer has come, so that an error leaves standard output empty.
  let head = '{\n  "instances": [';
  for await (const batch of batches) {
    for (const instance of batch.instances) {
      await terminal.write(`${head}${separator}    ${JSON.stringify(wire(instance))}`);
      [head, separator] = ["", ",\n"];
    }
    end = batch;
  }
  const cursor = end.hasNextPage && end.cursor !== undefined ? end.cursor : undefined;
  const rest = [
    `${head}${separator === "\n" ? "" : "\n  "}]`,
    `  "hasNextPage": ${end.hasNextPage}`,
    ...(cursor === undefined ? [] : [`  "cursor": ${JSON.stringify(cursor)}`]),
  ];
  await terminal.line(`${rest.join(",\n")}\n}`);
}

async function writeTable(
  session: Session,
  batches: AsyncIterable<Batch>,
  workflow: string | undefined,
): Promise<void> {
  const { terminal } = session;
  const { colors } = terminal;
  const progress = terminal.progress();
  const rows: Listed[] = [];
  let end: Batch | null = null;
  for await (const batch of batches) {
    rows.push(...batch.instances);
    end = batch;
    progress.tell(counted(rows.length, "instance"));
  }
  progress.clear();
  if (rows.length === 0) {
    terminal.note(
      `no instances${workflow === undefined ? "" : ` of "${workflow}"`}; start one: pawl start ${workflow ?? "<workflow>"}`,
    );
    return;
  }
  const head = ["WORKFLOW", "ID", "STATUS", "RUN", "CREATED", "TOOK", "RESULT"].map(colors.dim);
  const cells = rows.map((each) => [
    each.workflow,
    each.id,
    statusWord(each.details.status, colors),
    String(each.runNumber),
    ago(each.createdAt),
    took(each),
    each.details.outputTruncated === true ? colors.dim("(over 4 KiB)") : outcome(each.details),
  ]);
  await terminal.lines(table([head, ...cells], terminal.width));
  if (end?.hasNextPage === true) {
    const next = end.cursor === undefined ? "" : `, the next page: --cursor ${end.cursor}`;
    terminal.note(`there are more: --all${next}`);
  }
}

function took({ startedAt, finishedAt }: ListedInstance): string {
  if (startedAt === null || finishedAt === null) return "";
  return duration(finishedAt.getTime() - startedAt.getTime());
}
