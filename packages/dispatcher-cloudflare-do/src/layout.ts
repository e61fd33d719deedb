import { ValidationError, type Registry } from "pawl";
import { placeOf, type Target } from "pawl/durable-object";

/** A list asks every object, and its cursor has a position in each. */
const MAX_SHARDS = 64;

/** Has everything if there is one object, and keeps how many there are if there are more. */
const FIRST = "pawl";

/** How instances are spread over objects. It is for ever: an instance stays where it was made. */
export type Sharding = {
  /** Objects over which instances are spread by their workflow and id, 1 to 64. Default 1. */
  readonly shards?: number | undefined;
  /** "workflow" makes one object for each workflow, whatever their ids. Default "instance". */
  readonly shardBy?: "instance" | "workflow" | undefined;
};

/** The objects of a namespace, by name. */
export interface Layout {
  /** In words. */
  readonly spread: string;
  readonly names: readonly string[];
  nameOf(target: Target): string;
  /** Those that may have instances of that workflow. */
  namesOf(workflow: string): readonly string[];
}

/** With `workflows`, as the class has them. */
export function layoutOf(given: Sharding & { readonly workflows?: Registry | undefined }): Layout {
  const { shards, shardBy = "instance", workflows } = given;
  if (shardBy === "workflow") {
    if (shards !== undefined) {
      throw new ValidationError(
        'shardBy: "workflow" makes one object for each workflow: leave out shards',
      );
    }
    return byWorkflow(workflows);
  }
  if (shardBy !== "instance") {
    throw new ValidationError(
      `shardBy must be "instance" or "workflow", got ${JSON.stringify(shardBy)}`,
    );
  }
  return byInstance(checkedShards(shards ?? 1));
}

function byInstance(shards: number): Layout {
  const names = Array.from({ length: shards }, (_, n) => (n === 0 ? FIRST : `${FIRST}-${n}`));
  return {
    spread: `shards: ${shards}`,
    names,
    nameOf: (target) => names[placeOf(target, shards)] as string,
    namesOf: () => names,
  };
}

function byWorkflow(workflows: Registry | undefined): Layout {
  if (workflows === undefined) {
    throw new ValidationError('shardBy: "workflow" needs workflows, as the class has them');
  }
  const known = new Map(Object.values(workflows).map(({ name }) => [name, `${FIRST}:${name}`]));
  const nameOf = (workflow: string): string => known.get(workflow) ?? FIRST;
  return {
    spread: 'shardBy: "workflow"',
    names: [FIRST, ...known.values()],
    nameOf: ({ workflow }) => nameOf(workflow),
    namesOf: (workflow) => [nameOf(workflow)],
  };
}

function checkedShards(shards: number): number {
  if (Number.isInteger(shards) && shards >= 1 && shards <= MAX_SHARDS) return shards;
  throw new ValidationError(
    `shards must be a whole number from 1 to ${MAX_SHARDS}, got ${JSON.stringify(shards)}`,
  );
}
