// @ts-check
import { absurd } from "./absurd.mjs";
import { cloudflare } from "./cloudflare.mjs";
import { dbos } from "./dbos.mjs";
import * as ideal from "./ideal.mjs";
import * as openworkflow from "./openworkflow.mjs";
import * as pawl from "./pawl.mjs";
import { boss, graphile } from "./queues.mjs";
import { restate } from "./restate.mjs";

/** @type {Record<string, import("../engine.mjs").Adapter>} */
export const engines = {
  "pawl-postgres": pawl.onPostgres,
  "pawl-sqlite": pawl.onSqlite,
  absurd,
  dbos,
  "openworkflow-postgres": openworkflow.onPostgres,
  "openworkflow-sqlite": openworkflow.onSqlite,
  restate,
  cloudflare,
  "pg-boss": boss,
  "graphile-worker": graphile,
  "ideal-postgres": ideal.onPostgres,
  "ideal-sqlite": ideal.onSqlite,
};

export const PEERS = [
  "absurd",
  "dbos",
  "openworkflow",
  "restate",
  "cloudflare",
  "pg-boss",
  "graphile-worker",
];

/**
 * Returns Pawl on these stores, peers that share one of them or have their own (Restate, Cloudflare), and no engine.
 * @param {readonly string[]} stores
 * @param {readonly string[]} peers
 */
export function contestants(stores, peers) {
  return Object.keys(engines).filter((name) => {
    const { store } = engines[name] ?? {};
    const isAsked = ["pawl", "ideal", ...peers].some(
      (project) => name === project || name.startsWith(`${project}-`),
    );
    return isAsked && ["restate", "cloudflare", ...stores].includes(store ?? "");
  });
}
