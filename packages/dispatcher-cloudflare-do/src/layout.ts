import { ValidationError, type Registry } from "pawl";
import { placeOf, type Target } from "pawl/durable-object";

/** The most objects there may be. A list asks every object, and its cursor has a position in each. */
const MAX_SHARDS = 64;

/**
 * The name of the first object. It has everything if there is only one, and otherwise also records how many there are.
 */
const FIRST = "pawl";

/** How instances are spread over objects. It can never be changed, because an instance stays where it was created. */
export type Sharding = {
  /** The number of objects, 1 to 64, over which instances are spread by their workflow and id. Default 1. */
  readonly shards?: number | undefined;
  /** "workflow" makes one object for each workflow, whatever their ids. Default "instance". */
  readonly shardBy?: "instance" | "workflow" | undefined;
};

/** The objects of a namespace, by name. */
export interface Layout {
  /** How instances are spread, in words. */
  readonly spread: string;
  readonly names: readonly string[];
  nameOf(target: Target): string;
  /** The objects that may have instances of that workflow. */
  namesOf(workflow: string): readonly string[];
}

/** Returns the layout. `workflows` are those of the class. */
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
