// The example of Cloudflare's own guide, with another import line.
import { NonRetryableError, WorkflowEntrypoint, type WorkflowEvent, type WorkflowStep } from "pawl";

type Env = {
  MY_BUCKET: { get(key: string): Promise<string | null> };
};

type Params = {
  email: string;
  metadata: Record<string, string>;
};

declare class ExecutionContext {
  waitUntil(promise: Promise<unknown>): void;
}

export class MyWorkflow extends WorkflowEntrypoint<Env, Params> {
  private readonly prefix: string;

  constructor(ctx: ExecutionContext, env: Env) {
    super(ctx, env);
    this.prefix = "image";
  }

  async run(event: WorkflowEvent<Params>, step: WorkflowStep) {
    const files = await step.do("my first step", async () => {
      return { inputParams: event, files: ["doc_7392_rev3.pdf", "report_x29_final.pdf"] };
    });

    const waitForApproval = await step.waitForEvent<{ approved: boolean }>("request-approval", {
      type: "approval",
      timeout: "1 minute",
    });

    const apiResponse = await step.do("some other step", async () => {
      const image = await this.env.MY_BUCKET.get(this.prefix + files.files.length);
      if (image === null) throw new NonRetryableError("no image", "MissingImage");
      return image;
    });

    await step.sleep("wait on something", "1 minute");
    await step.sleepUntil("wait for a date", Date.parse("24 Oct 2024 13:00:00 UTC"));

    await step.do(
      "make a call to write that could maybe, just might, fail",
      {
        retries: { limit: 5, delay: "5 second", backoff: "exponential" },
        timeout: "15 minutes",
      },
      async () => {
        if (!waitForApproval.payload.approved) throw new Error("API call failed");
        return apiResponse.length;
      },
    );
  }
}
