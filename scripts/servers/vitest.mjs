// @ts-check
// This is vitest's global setup of the `stores` project. Workers inherit the environment set here.
import { startServers } from "./index.mjs";

export default async function setup() {
  const { env, stop } = await startServers();
  Object.assign(process.env, env);
  return stop;
}
