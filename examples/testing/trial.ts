import { defineWorkflow, type WorkflowEvent } from "pawl";

type Trial = { readonly email: string };

export const TRIAL = defineWorkflow({
  name: "trial",
  async run(event: WorkflowEvent<Trial>, step) {
    const { email } = event.payload;
    await step.do("welcome", () => sendMail(email, "welcome"));
    await step.sleep("the trial", "14 days");
    try {
      const { payload } = await step.waitForEvent<{ plan: string }>("choice", {
        type: "chose",
        timeout: "3 days",
      });
      return { plan: payload.plan };
    } catch {
      await step.do("goodbye", () => sendMail(email, "goodbye"));
      return { plan: "none" };
    }
  },
});

async function sendMail(email: string, text: string): Promise<string> {
  throw new Error(`no mail server for "${text}" to ${email}`);
}
