import { setTimeout as sleep } from "node:timers/promises";
import { WorkflowError, type WorkflowErrorCode } from "pawl";
import { createClient, type Client } from "pawl/client";
import { eventTypes, randomProgram, type Node } from "../../../pawl/test/sim/program.js";
import type { Dice } from "../../../pawl/test/sim/random.js";

/** The answers that people got, to be compared with the database in the end. */
export class ClientLog {
  /** Instances whose creation was acknowledged. */
  readonly created = new Map<string, Node>();
  /** Instances that were asked for. Without an answer they may or may not be there. */
  readonly unsure = new Map<string, Node>();
  readonly terminated = new Set<string>();
  readonly restarted = new Set<string>();
  /** Accepted events, by the ids of their instances and their own. */
  readonly sent = new Set<string>();
  readonly refusals = new Map<string, number>();
}

const PEOPLE = 6;
/** The codes of a request that came at the wrong time, or while the database was away. */
const expected: ReadonlySet<WorkflowErrorCode> = new Set([
  "INSTANCE_TERMINAL",
  "STORE_UNAVAILABLE",
  "INSTANCE_NOT_FOUND",
]);

/** Acts as people who start programs and interfere with them over HTTP, until `isOver`. */
export async function makeLoad(
  dice: Dice,
  api: () => string,
  log: ClientLog,
  isOver: () => boolean,
): Promise<void> {
  let made = 0;
  const person = async (own: Dice): Promise<void> => {
    const mine: string[] = [];
    while (!isOver()) {
      const client = clientOf(api());
      const id = `order-${++made}`;
      const program = quicker(randomProgram(own));
      log.unsure.set(id, program);
      await attempt(log, async () => {
        await client.workflows["PROGRAM"]?.create({ id, params: { program } });
        log.created.set(id, program);
        mine.push(id);
      });
      for (let n = own.upTo(3); n > 0; n--) await interfere(own, client, own.pick(mine), log);
      await sleep(own.between(20, 400));
    }
  };
  await Promise.all(Array.from({ length: PEOPLE }, () => person(dice.fork())));
}

let events = 0;

async function interfere(dice: Dice, client: Client, id: string | undefined, log: ClientLog) {
  if (id === undefined) return;
  await attempt(log, async () => {
    const instance = await client.workflows["PROGRAM"]?.get(id);
    if (instance === undefined) return;
    const choice = dice.upTo(19);
    if (choice === 0) {
      await instance.terminate();
      log.terminated.add(id);
    } else if (choice === 1) {
      // This is noted before the request, which may happen without an answer.
      log.restarted.add(id);
      await instance.restart();
    } else if (choice <= 4) {
      await instance.pause();
    } else if (choice <= 9) {
      await instance.resume();
    } else {
      const event = { type: dice.pick(eventTypes), id: `event-${++events}`, payload: { id } };
      await instance.sendEvent(event);
      log.sent.add(`${id} ${event.id}`);
    }
  });
}

/** Resumes paused instances, which do not go on by themselves. */
export async function resumeAll(api: () => string, ids: readonly string[]): Promise<void> {
  const log = new ClientLog();
  for (const id of ids) {
    await attempt(log, async () => (await clientOf(api()).workflows["PROGRAM"]?.get(id))?.resume());
  }
}

async function attempt(log: ClientLog, work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const what =
      error instanceof WorkflowError && expected.has(error.code) ? error.code : unanswered(error);
    log.refusals.set(what, 1 + (log.refusals.get(what) ?? 0));
    await sleep(50);
  }
}

/** `fetch` throws a TypeError when there is nobody, or nobody any more. */
function unanswered(error: unknown): string {
  if (error instanceof TypeError) return "no answer";
  throw error;
}

const clients = new Map<string, Client>();

function clientOf(baseUrl: string): Client {
  const client = clients.get(baseUrl) ?? createClient({ baseUrl });
  clients.set(baseUrl, client);
  return client;
}

/** Makes the simulator's programs quicker, because their time is real here. */
function quicker(node: Node): Node {
  switch (node.kind) {
    case "do":
      return {
        ...node,
        takesMs: Math.round(node.takesMs / 4),
        delayMs: Math.round(node.delayMs / 4),
        ...(node.nested === undefined ? {} : { nested: quicker(node.nested) as typeof node }),
      };
    case "sleep":
      return { ...node, ms: Math.round(node.ms / 4) };
    case "wait":
      return { ...node, ms: Math.max(1_000, node.ms / 4) };
    case "try":
      return { ...node, item: quicker(node.item) };
    case "aside":
    case "stray":
    case "hurry":
      return { ...node, ms: Math.round(node.ms / 4), item: quicker(node.item) };
    case "seq":
    case "all":
    case "race":
    case "any":
    case "settled":
    case "branch":
      return { ...node, items: node.items.map(quicker) };
    case "spawn":
      return node;
  }
}
