// These are the examples of docs/hooks.md. Each region is quoted there word for word, which the last test
// checks.
import { openSqlite, serve, wakeOverHttp } from "@pawl/dispatcher-node";
import { createWorkflows, defineWorkflow } from "pawl";
import { bearerToken } from "pawl/auth";
import { sqliteStore } from "pawl/sqlite";
import { expect, onTestFinished, test } from "vitest";
import { examplesIn, regionsOf } from "./quoted.js";

const workflows = { HELLO: defineWorkflow({ name: "hello", run: async () => "hello" }) };
const secret = "a-secret-of-at-least-24-bytes";

function memory() {
  const handle = openSqlite(":memory:");
  onTestFinished(() => void handle.close());
  return sqliteStore(handle);
}

test("hooks are told of ends, their failures can be retried, and they can be removed", async () => {
  const store = memory();
  const posted: unknown[] = [];
  let isDown = false;
  const chat = {
    post: async (key: string, text: string) => {
      if (isDown) throw new Error("the chat is down");
      posted.push([key, text]);
    },
  };
  // #region hook
  const pawl = createWorkflows({
    workflows,
    store,
    hooks: {
      async onInstanceFinished({ id, workflowName, instanceId, status }) {
        if (status === "errored") await chat.post(id, `${workflowName} ${instanceId} failed`);
      },
      async onWorkflowEnqueued(happened, { attempt, signal }) {
        console.log(happened.reason, happened.instanceId, attempt, signal.aborted);
      },
    },
  });
  // #endregion
  await pawl.migrate();
  await pawl.workflows.HELLO.create({ id: "h" });
  await pawl.tick();
  expect(posted).toEqual([]);

  isDown = true;
  const failing = createWorkflows({
    workflows: {
      HELLO: defineWorkflow({ name: "hello", run: () => Promise.reject(new Error("no")) }),
    },
    store,
    hooks: {
      onInstanceFinished: ({ id }) => chat.post(id, "failed"),
    },
  });
  await failing.workflows.HELLO.create({ id: "f" });
  await failing.tick();
  // #region failed
  const { deliveries } = await pawl.hooks.failed({ pageSize: 50 });
  for (const { id, hook, attempts, error } of deliveries) {
    console.log(hook, attempts, error.message);
    await pawl.hooks.retry(id);
  }
  // #endregion
  expect(deliveries).toEqual([]); // the delivery will be tried 14 times more
  await failing.runner.stop(0);

  // #region unregister
  const dropped = await pawl.hooks.unregister("onWorkflowEnqueued");
  // #endregion
  expect(dropped).toBe(1); // the creation that the other process did not hear of
  await pawl.close();
});

test("a host without a process is woken over HTTP", async () => {
  const store = memory();
  // #region remote
  const remote = createWorkflows({
    workflows,
    store,
    tick: { enabled: true },
    authorize: { tick: bearerToken(secret) },
  });
  // #endregion
  await remote.migrate();
  const server = await serve(remote, { port: 0 });
  const url = `${server.url}/api/_runner/tick`;
  // #region wake
  const pawl = createWorkflows({
    workflows,
    store,
    hooks: { onWorkflowEnqueued: wakeOverHttp({ url, token: secret }) },
  });
  // #endregion
  const instance = await pawl.workflows.HELLO.create();
  expect(await instance.result({ timeout: "20 seconds" })).toBe("hello");
  await pawl.runner.stop(1_000);
  await server.close({ timeoutMs: 0 });
  await remote.close();
});

test("the page has these examples and no others", () => {
  const examples = regionsOf("packages/dispatcher-node/test/hooks-page.unit.test.ts");
  expect(examplesIn("docs/hooks.md")).toEqual(examples);
});
