// These are the examples of docs/cloudflare.md. Each region is quoted there word for word, which a test
// checks.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSqlite, startRunner } from "@pawl/dispatcher-node";
import { createWorkflows } from "pawl";
// #region import
import { WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl"; // was: "cloudflare:workers"
// #endregion
import { sqliteStore } from "pawl/sqlite";
import { expect, test } from "vitest";
import { examplesIn, regionsOf } from "./quoted.js";

type Env = { readonly MAILER: { send(to: string): string } };

class SignupWorkflow extends WorkflowEntrypoint<Env, { email: string }> {
  async run(event: WorkflowEvent<{ email: string }>, step: WorkflowStep): Promise<string[]> {
    const sent: string[] = [];
    for (let n = 0; n < 2; n++) {
      sent.push(
        await step.do("mail", async () => `${n} ${this.env.MAILER.send(event.payload.email)}`),
      );
    }
    return sent;
  }
}

test("a workflow written for Cloudflare runs with its binding", async () => {
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), "pawl-cloudflare-"));
  process.chdir(folder);
  const mailer = { send: (to: string) => `to ${to}` };
  // #region binding
  const pawl = createWorkflows({
    workflows: { SIGNUP: { name: "signup", workflow: SignupWorkflow } },
    store: sqliteStore(openSqlite("pawl.db")),
    env: { MAILER: mailer },
    repeatedStepNames: "counted",
  });
  await pawl.migrate();
  const runner = startRunner(pawl);

  const instance = await pawl.workflows.SIGNUP.create({ params: { email: "ada@example.org" } });
  // #endregion
  const both = ["0 to ada@example.org", "1 to ada@example.org"];
  expect(await instance.result({ timeout: "20 seconds" })).toEqual(both);
  await runner.stop();
  await pawl.close();
  process.chdir(before);
  rmSync(folder, { recursive: true });
});

test("the page has these examples and no others", () => {
  const examples = regionsOf("packages/dispatcher-node/test/cloudflare-page.unit.test.ts");
  expect(examplesIn("docs/cloudflare.md")).toEqual(examples);
});
