import { createClient } from "pawl/client";
import type { openPawl } from "./workflows.js";

/** Calls the API from anywhere, with the types of the engine and none of its code. */
export async function resize(baseUrl: string, token: string, image: string) {
  const client = createClient<ReturnType<typeof openPawl>>({
    baseUrl,
    headers: { authorization: `Bearer ${token}` },
  });
  const instance = await client.workflows.RESIZE.create({ params: { image } });
  return instance.result({ timeout: "30 seconds" });
}
