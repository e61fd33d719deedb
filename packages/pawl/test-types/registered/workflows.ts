import {
  defineRegistry,
  defineWorkflow,
  WorkflowEntrypoint,
  type Bindings,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";
import { same } from "../same.js";

type Env = { readonly mailer: { send(to: string): Promise<void> } };
type Node = { readonly depth: number };

/** Creates its own kind, and a sibling that is declared later. No return type is written down. */
export class TreeWorkflow extends WorkflowEntrypoint<Env, Node> {
  override async run(event: WorkflowEvent<Node>, step: WorkflowStep) {
    same<number>()(event.payload.depth);
    same<Env>()(this.env);
    const child = await step.do("grow", async () => {
      const tree = await this.workflows.TREE.create({ params: { depth: event.payload.depth - 1 } });
      // @ts-expect-error the params of its own kind are known
      await this.workflows.TREE.create({ params: { depth: "deep" } });
      // @ts-expect-error and required
      await this.workflows.TREE.create({});
      // @ts-expect-error there is no such workflow
      await this.workflows.BUSH.create();
      return tree.id;
    });
    same<string>()(child);
    const leaf = await this.workflows.LEAF.create();
    same<"green">()(await leaf.result());
    return { child, leaf: leaf.id };
  }
}

/** By default, env and bindings are what is registered. */
export class LeafWorkflow extends WorkflowEntrypoint {
  override async run(event: WorkflowEvent, step: WorkflowStep) {
    same<Env>()(this.env);
    await step.do("ask", () => this.workflows.PING.create({ params: { to: event.instanceId } }));
    return "green" as const;
  }
}

export const ping = defineWorkflow({
  name: "ping",
  // A return type is needed, because `workflows` has this very definition in it.
  async run(
    event: WorkflowEvent<{ to: string }>,
    step,
    { env, workflows },
  ): Promise<{ sent: boolean }> {
    same<Env>()(env);
    await step.do("send", () => env.mailer.send(event.payload.to));
    const tree = await workflows.TREE.create({ params: { depth: 1 } });
    same<{ child: string; leaf: string }>()(await tree.result());
    await workflows.PING.create({ params: { to: tree.id } });
    return { sent: true };
  },
});

export const registry = defineRegistry({
  TREE: { name: "tree", workflow: TreeWorkflow },
  LEAF: { name: "leaf", workflow: LeafWorkflow },
  PING: ping,
  PONG: defineWorkflow({
    name: "pong",
    run: async (_event, step, { workflows }): Promise<number> => {
      await step.do("again", async () => void (await workflows.PONG.create()));
      return 1;
    },
  }),
});

declare module "pawl" {
  interface Register {
    workflows: Bindings<typeof registry>;
    env: Env;
  }
}
