import { CommanderError } from "commander";
import { exitCode } from "./failure.js";
import { configNeverLoaded } from "./load-config.js";
import { program } from "./program.js";
import { Terminal } from "./terminal/terminal.js";
import { withoutExperimentalWarnings } from "./terminal/warnings.js";

withoutExperimentalWarnings();

// A reader that has seen enough, as in `pawl list | head`, is not an error.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", ({ code, message }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") process.exit(exitCode.ok);
    if (stream === process.stdout) process.stderr.write(`error cannot write: ${message}\n`);
    process.exit(exitCode.failed);
  });
}

// A config may await something that never comes. Node then has nothing left to do and would end without a word.
let isOver = false;
const isJson = process.argv.includes("--json");
process.once("beforeExit", () => {
  if (isOver) return;
  const failure = configNeverLoaded();
  new Terminal({ json: isJson }).fail(failure);
  process.exit(failure.exit);
});

const pawl = program();
for (const each of [pawl, ...pawl.commands]) {
  each.exitOverride();
  if (isJson) each.configureOutput({ writeErr() {} });
}
try {
  if (process.argv.length <= 2) pawl.help({ error: true });
  await pawl.parseAsync();
} catch (error) {
  if (!(error instanceof CommanderError)) throw error;
  const message = error.message.replace(/^error: /, "");
  if (isJson && error.exitCode !== 0) {
    process.stderr.write(`${JSON.stringify({ error: { code: "INVALID_USAGE", message } })}\n`);
  }
  process.exitCode = error.exitCode === 0 ? exitCode.ok : exitCode.usage;
}
isOver = true;
