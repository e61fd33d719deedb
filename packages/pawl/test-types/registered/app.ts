// This file is checked before the classes, because no order of files may close a cycle.
import { createWorkflows } from "pawl";
import { createClient } from "pawl/client";
import { same } from "../same.js";
import { store } from "../store.js";
import { registry } from "./workflows.js";

const env = { mailer: { send: async () => {} } };
const pawl = createWorkflows({ store, workflows: registry, env });
const { workflows } = pawl;
// @ts-expect-error env is required
createWorkflows({ store, workflows: registry });

export async function start() {
  const tree = await workflows.TREE.create({ params: { depth: 3 } });
  same<{ child: string; leaf: string }>()(await tree.result());
  same<{ sent: boolean }>()(await (await workflows.PING.get("a")).result());
  same<number>()(await (await workflows.PONG.create()).result());
}

// Without the types of any runtime, the client still has those that it needs.
export async function startRemotely() {
  const client = createClient<typeof pawl>({ baseUrl: "https://example.org" });
  const tree = await client.workflows.TREE.create({ params: { depth: 3 } });
  same<{ child: string; leaf: string }>()(await tree.result());
  const { status } = await pawl.fetch({
    method: "GET",
    url: "https://example.org/api/workflows",
    headers: { get: () => null },
    body: null,
  });
  same<number>()(status);
}
