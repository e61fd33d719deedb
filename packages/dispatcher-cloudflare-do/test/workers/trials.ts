import { workflowsBinding, workflowsDurableObject } from "@pawl/dispatcher-cloudflare-do";
import { defineWorkflow, WorkflowError, type StepContext, type Workflow } from "pawl";
import {
  execute,
  normal,
  outcomesOf,
  type DoNode,
  type Node,
} from "../../../pawl/test/sim/program.js";
import { smallPrograms } from "../../../pawl/test/sim/programs.js";
import { canMeet, onTrial, Trial, type Fault, type Strike } from "./trial.js";

type Env = { readonly OBJECTS: DurableObjectNamespace };

/** By the ids of objects, because objects end and their trials go on. */
const trials = new Map<string, Trial>();
const states = new Map<string, DurableObjectState>();

const childProgram: Node = {
  kind: "do",
  name: "c",
  limit: null,
  delayMs: 10,
  failures: 0,
  takesMs: 0,
  kills: [],
};

type Params = { readonly object: string; readonly program: string; readonly of?: string };

const registry = {
  PROGRAM: defineWorkflow({
    name: "program",
    run({ payload, instanceId: id }, step, { workflows }) {
      const { object, program } = payload as Params;
      const { PROGRAM } = workflows as unknown as { PROGRAM: Workflow };
      const child = { object, program: "of a parent" };
      return execute(smallPrograms[program] ?? childProgram, step, {
        sleep: (ms) => scheduler.wait(ms),
        called: () => 0,
        saw: () => {},
        body: (node, context, _known, first) => body(object, id, node, context, first),
        child: (name) => PROGRAM.create({ params: { ...child, of: `${id} ${name}` } }),
        spawn: (name) => PROGRAM.create({ id: `${name}-of-${id}`, params: child }).catch(isThere),
      });
    },
  }),
};

let tokens = 0;

async function body(
  object: string,
  id: string,
  node: DoNode,
  { attempt }: StepContext,
  first: () => Promise<void>,
): Promise<unknown> {
  const trial = trials.get(object) as Trial;
  const ctx = states.get(object) as DurableObjectState;
  trial.pass(`enter ${node.name}`, ctx);
  // Like anything that leaves the object, this waits until what was written before is durable.
  await ctx.storage.sync();
  const entry = trial.ledger.enter({
    run: `${id}#1`,
    step: node.name,
    attempt,
    maxAttempts: node.limit === null ? Infinity : node.limit + 1,
    process: object,
    enteredAt: Date.now(),
  });
  trial.guard(() => trial.checker.entered(id, 1, node.name));
  await first();
  if (node.takesMs > 0) await scheduler.wait(Math.min(node.takesMs, 300));
  if (attempt <= node.failures) throw new Error(`failed ${node.name}`);
  entry.token = `t${++tokens}`;
  trial.pass(`leave ${node.name}`, ctx);
  return { step: node.name, token: entry.token };
}

export class Host extends workflowsDurableObject<typeof registry, Env>({
  workflows: registry,
  logger: { debug() {}, info() {}, warn() {}, error() {} },
}) {
  readonly #trial: Trial | undefined;

  constructor(ctx: DurableObjectState, env: Env) {
    const trial = trials.get(ctx.id.toString());
    super(onTrial(ctx, trial), env);
    states.set(ctx.id.toString(), ctx);
    this.#trial = trial;
    if (trial !== undefined) trial.alarm = () => this.alarm();
  }

  override async alarm(): Promise<void> {
    try {
      await super.alarm?.();
    } catch (error) {
      this.#trial?.thrown.push(error);
      throw error;
    }
  }

  async alarmAt(): Promise<number | null> {
    return this.ctx.storage.getAlarm();
  }
}

type Told = { readonly struck: string | null; readonly wrong: string | null };

/** Programs whose steps have no attempt to spare. */
const mayRunOut = new Set(["at most once", "an error", "all settled"]);
const PATIENCE_MS = 45_000;

/** Plays the life of one object with one program in it. */
async function live(env: Env, program: string, strike: Strike | null): Promise<Trial> {
  const id = env.OBJECTS.newUniqueId();
  const object = id.toString();
  const trial = new Trial(strike);
  trials.set(object, trial);
  const { PROGRAM } = workflowsBinding<typeof registry>({
    idFromName: () => id,
    get: (theId) => env.OBJECTS.get(theId),
  });
  // One program meets faults even while its object starts.
  if (program === "one step") trial.begin();
  await stubborn(() => PROGRAM.createBatch([]));
  trial.begin();
  await stubborn(() => PROGRAM.create({ id: "p0", params: { object, program } }));
  // From here on only its alarm wakes it, unless it waits for events.
  for (const type of waitsFor(smallPrograms[program] as Node)) {
    const send = async () => (await PROGRAM.get("p0")).sendEvent({ type, id: type });
    await stubborn(send);
  }
  const endsAt = Date.now() + PATIENCE_MS;
  while (trial.end === null && Date.now() < endsAt) await scheduler.wait(50);
  return trial;
}

function waitsFor(node: Node): string[] {
  if (node.kind === "wait") return [node.type];
  const items = "items" in node ? node.items : "item" in node ? [node.item] : [];
  return items.flatMap(waitsFor);
}

/**
 * Asks until the request is known to have happened. That it has already, or cannot any more, is an answer.
 */
async function stubborn(ask: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < 20; n++) {
    const error: unknown = await ask().then(
      () => null,
      (e: unknown) => e,
    );
    if (error === null) return;
    if (!(error instanceof WorkflowError)) throw error;
    if (!["STORE_UNAVAILABLE", "INTERNAL_ERROR"].includes(error.code)) return;
    await scheduler.wait(20);
  }
  throw new Error("nobody answers");
}

function judged(program: string, trial: Trial): string | null {
  const wrong = trial.verdict();
  if (wrong !== null || trial.end === null) return wrong;
  const outcomes = outcomesOf(smallPrograms[program] as Node, mayRunOut.has(program));
  const { output, error } = trial.end.instances.find(({ id }) => id === "p0") ?? {};
  if (error != null) return mayRunOut.has(program) ? null : `it failed: ${error}`;
  return outcomes === null || outcomes.values.has(normal(output ?? null))
    ? null
    : `its output is ${output}`;
}

function isThere(error: unknown): void {
  if ((error as WorkflowError).code !== "INSTANCE_ID_ALREADY_EXISTS") throw error;
}

/** More lives at once would slow each other down. */
const MAX_LIVES = 150;
const lives = new Set<object>();

async function takingTurns<T>(work: () => Promise<T>): Promise<T> {
  while (lives.size >= MAX_LIVES) await scheduler.wait(20);
  const life = {};
  lives.add(life);
  try {
    return await work();
  } finally {
    lives.delete(life);
  }
}

/** Plays a program once undisturbed, and then once for each point at which it can meet the fault. */
export default {
  async fetch(request, env) {
    const { program, fault } = (await request.json()) as { program: string; fault: Fault };
    const play = async (strike: Strike | null): Promise<[Trial, Told]> => {
      const trial = await takingTurns(() => live(env, program, strike));
      const struck = strike && trial.points[strike.at];
      return [trial, { struck: struck ?? null, wrong: judged(program, trial) }];
    };
    const [{ points }, told] = await play(null);
    const struck = points.map(async (point, at) => {
      if (!canMeet(point, fault)) return [];
      const [, tells] = await play({ fault, at });
      return [{ at, ...tells }];
    });
    return Response.json({ undisturbed: told, struck: (await Promise.all(struck)).flat() });
  },
} satisfies ExportedHandler<Env>;
