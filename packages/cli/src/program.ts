import { readFileSync } from "node:fs";
import tab from "@bomb.sh/tab/commander";
import { Command, InvalidArgumentError, Option } from "commander";
import {
  inputFields,
  liveStates,
  operationEntries,
  terminalStates,
  type OperationName,
} from "pawl/operations";
import type { ListCommandOptions } from "./commands/list.js";
import type { ReplayCommandOptions } from "./commands/replay.js";
import type { SendOptions } from "./commands/send.js";
import type { ShowOptions } from "./commands/show.js";
import type { StartOptions } from "./commands/start.js";
import type { DevOptions } from "./dev/dev.js";
import { Session, type CommonOptions } from "./session.js";

// Commands are imported when they are called: most of them need little, and all of them should start at once.

const after = `
Commands work on pawl.config.ts (found here or in a folder above, or given with --config), or on a running API
(--url or PAWL_URL, with --token or PAWL_TOKEN).

Exit codes: 0 done · 1 failed · 2 wrong usage, input or config · 3 no such workflow or instance · 4 database or API away

  pawl dev                                          run the workflows, serve the API, restart on changes
  pawl start order --id order-1 --params '{"amount":42}'
  pawl send order order-1 approved --payload '{"by":"Ada"}'
  pawl show order order-1`;

export function program(): Command {
  const pawl = new Command("pawl")
    .description("Runs, starts, watches and repairs Pawl workflows.")
    .version(version(), "-v, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [command]", "print help")
    .showHelpAfterError("(pawl --help tells more)")
    .addHelpText("after", after);
  const all = [
    addDev,
    addMigrate,
    addTick,
    addList,
    addShow,
    addStart,
    addSend,
    addOperations,
    addReplay,
  ];
  for (const add of all) add(pawl);
  for (const each of pawl.commands) addCommonOptions(each, !onConfigOnly.has(each.name()));
  tab(pawl, { completionCommandName: "completion" });
  const completion = pawl.commands.find((each) => each.name() === "completion");
  completion?.description("print what completes commands and options in your shell");
  return pawl;
}

function addDev(pawl: Command): void {
  command(pawl, "dev", "run the workflows, serve the HTTP API, and restart when a file changes")
    .option(
      "-p, --port <port>",
      "where the API listens (default: 3000; 0 for a free one)",
      whole(0, 65_535),
    )
    .option("--host <host>", "the address it listens on (default: 127.0.0.1, this machine only)")
    .option("--no-watch", "do not restart on changes")
    .option("--no-migrate", "do not create or upgrade the tables first")
    .action((_, self: Command) =>
      running(self, async (session) =>
        (await import("./dev/dev.js")).dev(session, self.opts<DevOptions>()),
      ),
    );
}

function addMigrate(pawl: Command): void {
  command(pawl, "migrate", "create or upgrade Pawl's tables")
    .option("--dry-run", "print the SQL, and change nothing")
    .action((options: { dryRun?: boolean }, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/migrate.js")).migrateCommand(session, options),
      ),
    );
}

function addTick(pawl: Command): void {
  command(pawl, "tick", "run what is due, once")
    .option("--max-instances <n>", "claim at most so many runs", whole(1))
    .option("--max-steps <n>", "give each run back after so many steps", whole(1))
    .action((options: { maxInstances?: number; maxSteps?: number }, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/tick.js")).tickCommand(session, options),
      ),
    );
}

function addList(pawl: Command): void {
  command(pawl, "list", "list instances, newest first")
    .argument("[workflow]", "its name; all workflows if left out")
    .addOption(
      new Option("-s, --status <status>", "only those").choices([...liveStates, ...terminalStates]),
    )
    .addOption(
      new Option("--order <order>", "by creation").choices(["newest", "oldest"]).default("newest"),
    )
    .addOption(new Option("-n, --limit <n>", "at most so many").argParser(whole(1)).default(25))
    .option("-a, --all", "all of them")
    .option("--cursor <cursor>", "go on after a page (with a workflow)")
    .action((workflow: string | undefined, options: ListCommandOptions, self: Command) => {
      if (options.cursor !== undefined && workflow === undefined) {
        self.error("error: --cursor needs a workflow");
      }
      return running(self, async (session) =>
        (await import("./commands/list.js")).listCommand(session, workflow, options),
      );
    });
}

function addShow(pawl: Command): void {
  command(pawl, "show", "show an instance: status, steps, attempts, errors, waits, events")
    .argument("<workflow>", "its name")
    .argument("<id>", "the instance")
    .option("-r, --run <n>", "an earlier run", whole(1))
    .addOption(
      new Option("-n, --limit <n>", "at most so many steps and events")
        .argParser(whole(1))
        .default(100),
    )
    .option("-a, --all", "all of them")
    .option("--cursor <cursor>", "go on after a page")
    .option("--values", "do not shorten results, payloads and errors")
    .action((workflow: string, id: string, options: ShowOptions, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/show.js")).showCommand(session, workflow, id, options),
      ),
    );
}

function addStart(pawl: Command): void {
  command(pawl, "start", "start an instance")
    .argument("<workflow>", "its name")
    .option("--id <id>", "its id; one is made if left out")
    .option("-p, --params <json>", "JSON text, @file, or - for standard input")
    .option(
      "-w, --wait [duration]",
      'wait for its end, at most so long ("30 seconds"); a runner must be at work',
    )
    .action((workflow: string, options: StartOptions, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/start.js")).startCommand(session, workflow, options),
      ),
    );
}

function addSend(pawl: Command): void {
  command(pawl, "send", "send an event to an instance")
    .argument("<workflow>", "its name")
    .argument("<id>", "the instance")
    .argument("<type>", "the event's type")
    .option("-p, --payload <json>", "JSON text, @file, or - for standard input")
    .option("--event-id <id>", "the same id again changes nothing")
    .action((workflow: string, id: string, type: string, options: SendOptions, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/send.js")).sendCommand(session, workflow, id, type, options),
      ),
    );
}

/** Adds one command for each operation that has a description of it in the table. */
function addOperations(pawl: Command): void {
  for (const [name, { command: description }] of operationEntries) {
    if (description === undefined) continue;
    const added = command(pawl, name, description)
      .argument("<workflow>", "its name")
      .argument("<ids...>", "the instances");
    for (const option of optionsOf(name)) added.addOption(option);
    added.action((workflow: string, ids: string[], given: Record<string, unknown>, self: Command) =>
      running(self, async (session) =>
        (await import("./commands/control.js")).controlCommand(session, name, workflow, ids, given),
      ),
    );
  }
}

/** Makes one option for each field of an operation's input, which may be text, a number or a switch. */
function optionsOf(operation: OperationName): Option[] {
  return Object.entries(inputFields(operation)).map(([field, { type, description }]) => {
    const flag = `--${field.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
    const option = new Option(type === "boolean" ? flag : `${flag} <${field}>`, description);
    return type === "integer" ? option.argParser(whole(0)) : option;
  });
}

function addReplay(pawl: Command): void {
  command(
    pawl,
    "replay",
    "check that the code still follows recorded histories; runs no step, writes nothing",
  )
    .argument("[workflow]", "its name")
    .argument("[ids...]", "the instances; the newest ones if left out")
    .option("-f, --file <files...>", "exported histories instead (- for standard input)")
    .option("-r, --run <n>", "an earlier run", whole(1))
    .option("--save <file>", "export the history of one instance to a file")
    .addOption(
      new Option("-n, --limit <n>", "at most so many instances").argParser(whole(1)).default(25),
    )
    .option("-a, --all", "all of them")
    .action(
      (workflow: string | undefined, ids: string[], options: ReplayCommandOptions, self: Command) =>
        running(self, async (session) =>
          (await import("./commands/replay.js")).replayCommand(session, workflow, ids, options),
        ),
    );
}

function command(pawl: Command, name: string, description: string): Command {
  return pawl
    .command(name)
    .description(description)
    .showHelpAfterError(`(pawl ${name} --help tells more)`);
}

/** The commands that need the code or the database itself. */
const onConfigOnly = new Set(["dev", "migrate", "replay"]);

function addCommonOptions(to: Command, isRemote: boolean): void {
  to.option("-c, --config <file>", "the config (default: the nearest pawl.config.ts)");
  if (isRemote) {
    to.addOption(
      new Option("-u, --url <url>", "a running API instead (or PAWL_URL)").conflicts("config"),
    ).option("--token <token>", "its bearer token (better: PAWL_TOKEN)");
  }
  to.option("--json", "answer in JSON");
}

function running(
  self: Command,
  work: (session: Session) => Promise<number | void>,
): Promise<never> {
  return new Session(self.name(), self.opts<CommonOptions>()).run(work);
}

function whole(from: number, to = Number.MAX_SAFE_INTEGER): (given: string) => number {
  return (given) => {
    const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
    if (value >= from && value <= to) return value;
    const range = to === Number.MAX_SAFE_INTEGER ? `from ${from}` : `from ${from} to ${to}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}

function version(): string {
  const text = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
