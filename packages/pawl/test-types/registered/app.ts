// Checked before the classes: no order of files may close a cycle.
import { createWorkflows } from "pawl";
import { same } from "../same.js";
import { store } from "../store.js";
import { registry } from "./workflows.js";

const env = { mailer: { send: async () => {} } };
const { workflows } = createWorkflows({ store, workflows: registry, env });
// @ts-expect-error env is required
createWorkflows({ store, workflows: registry });

export async function start() {
  const tree = await workflows.TREE.create({ params: { depth: 3 } });
  same<{ child: string; leaf: string }>()(await tree.result());
  same<{ sent: boolean }>()(await (await workflows.PING.get("a")).result());
  same<number>()(await (await workflows.PONG.create()).result());
}
