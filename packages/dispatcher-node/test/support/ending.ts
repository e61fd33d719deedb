/*
 * Small programs that end, each in its way. They are compiled for each run of the tests, as app.ts is.
 */
import { drainOnSignals, openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { sqliteStore } from "pawl/sqlite";

export type Ending = "close" | "drain" | "drain and fail";

const ending = process.argv[2] as Ending;
if (ending === "close") await closes();
else drains(ending === "drain and fail");

/** Nothing but the engine holds this process. */
async function closes(): Promise<void> {
  const hello = defineWorkflow({ name: "hello", run: () => "hello" });
  const pawl = createWorkflows({
    workflows: { HELLO: hello },
    store: sqliteStore(openSqlite(":memory:")),
    logger: { debug() {}, info: say, warn: say, error: say },
  });
  await pawl.migrate();
  startRunner(pawl, { poll: { minMs: 5, maxMs: 10 } });
  say(await (await pawl.workflows.HELLO.create()).result());
  await pawl.close();
  say("closed");
  process.disconnect();
}

/** The second part goes on until it is told to end. */
function drains(fails: boolean): void {
  const told = new Promise<void>((resolve) => process.once("message", () => resolve()));
  drainOnSignals([
    {
      stop: async () => {
        say("quick");
        if (fails) throw new Error("could not");
      },
    },
  ]);
  drainOnSignals([{ close: () => told.then(() => say("slow")) }], { timeoutMs: 60_000 });
  say("ready");
}

function say(word: unknown): void {
  process.send?.(word);
}
