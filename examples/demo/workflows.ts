import {
  defineRegistry,
  WorkflowEntrypoint,
  type Bindings,
  type WorkflowEvent,
  type WorkflowStep,
} from "pawl";

type Order = { readonly item: string; readonly amount: number };

/** Retries, and a wait for a person that costs nothing while it lasts. */
class OrderWorkflow extends WorkflowEntrypoint<unknown, Order> {
  async run(event: WorkflowEvent<Order>, step: WorkflowStep) {
    const { item, amount } = event.payload;
    const retries = { limit: 5, delay: "1 second", backoff: "exponential" } as const;
    const payment = await step.do("charge the card", { retries }, ({ attempt }) => {
      if (attempt < 3) throw new Error("the bank does not answer");
      return { amount, attempt };
    });
    const approval = await step.waitForEvent<{ by: string }>("approval", {
      type: "approved",
      timeout: "7 days",
    });
    const parcel = await step.do("ship", () => `a parcel with ${item}`);
    return { payment, approvedBy: approval.payload.by, parcel };
  }
}

type Person = { readonly email: string };

/** Sends mails over some days. The days are short here. */
class OnboardingWorkflow extends WorkflowEntrypoint<unknown, Person> {
  async run(event: WorkflowEvent<Person>, step: WorkflowStep) {
    const { email } = event.payload;
    const mails = ["welcome", "first steps", "how is it going?"];
    for (const mail of mails) {
      await step.do(`mail: ${mail}`, () => `${mail} to ${email}`);
      await step.sleep(`after: ${mail}`, "15 seconds");
    }
    return { mailed: mails.length };
  }
}

type Report = { readonly chapters: number };
type Chapter = { readonly report: string; readonly number: number };

/** Starts a child for each chapter. The children run in parallel, and each sends its result to its parent. */
class ReportWorkflow extends WorkflowEntrypoint<unknown, Report> {
  async run(event: WorkflowEvent<Report>, step: WorkflowStep): Promise<{ words: number }> {
    const numbers = Array.from({ length: event.payload.chapters }, (_, n) => n + 1);
    for (const number of numbers) {
      await step.do(`start chapter ${number}`, async () => {
        const params = { report: event.instanceId, number };
        const child = await this.workflows.CHAPTER.create({ params });
        return child.id;
      });
    }
    const written = await Promise.all(
      numbers.map((number) =>
        step.waitForEvent<{ words: number }>(`chapter ${number}`, { type: `chapter-${number}` }),
      ),
    );
    return { words: written.reduce((sum, { payload }) => sum + payload.words, 0) };
  }
}

class ChapterWorkflow extends WorkflowEntrypoint<unknown, Chapter> {
  async run(event: WorkflowEvent<Chapter>, step: WorkflowStep): Promise<number> {
    const { report, number } = event.payload;
    await step.sleep("think", `${2 * number} seconds`);
    const words = await step.do("write", () => 1_000 + 100 * number);
    await step.do("hand in", async () => {
      const parent = await this.workflows.REPORT.get(report);
      // With an id of its own the event arrives once, however often this step is tried.
      await parent.sendEvent({
        type: `chapter-${number}`,
        id: `chapter-${number}`,
        payload: { words },
      });
    });
    return words;
  }
}

export const registry = defineRegistry({
  ORDER: { name: "order", workflow: OrderWorkflow },
  ONBOARDING: { name: "onboarding", workflow: OnboardingWorkflow },
  REPORT: { name: "report", workflow: ReportWorkflow },
  CHAPTER: { name: "chapter", workflow: ChapterWorkflow },
});

declare module "pawl" {
  interface Register {
    workflows: Bindings<typeof registry>;
  }
}
