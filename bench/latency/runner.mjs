// @ts-check
// This is the other process of the measurement. It runs the workflow.
import { startRunner } from "@pawl/dispatcher-node";
import { open } from "./workflow.mjs";

const [url = "", schema = "", listen = ""] = process.argv.slice(2);
const { pawl, end } = open(url, schema);
const runner = startRunner(pawl, { listen: listen === "listen" });
process.on("disconnect", () => {
  void runner.stop({ timeoutMs: 0 }).then(end);
});
process.send?.("ready");
