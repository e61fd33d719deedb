import { IncompatibleDatabaseError } from "pawl";
import { spreadStore, type InstanceStore } from "pawl/durable-object";
import type { Layout } from "./layout.js";
import { objectIn, type WorkflowsNamespace, type WorkflowsObject } from "./namespace.js";
import { askSibling, siblingStore } from "./siblings.js";

/** The key under which an object records how instances were spread when it was first used. */
const SPREAD_KEY = "pawl.spread";

/** One of the objects of a layout. */
export class Shard {
  readonly #layout: Layout;
  /** The object's name in the layout; null if the layout does not have it. */
  readonly #name: string | null;
  readonly #namespace: WorkflowsNamespace | undefined;

  constructor(layout: Layout, id: DurableObjectId, namespace: WorkflowsNamespace | undefined) {
    this.#layout = layout;
    this.#namespace = namespace;
    const [first] = layout.names;
    this.#name =
      layout.names.length === 1
        ? (first as string)
        : (layout.names.find((name) => namespace?.idFromName(name).equals(id) === true) ?? null);
  }

  get spread(): string {
    return this.#layout.spread;
  }

  /** Returns the instances of all objects of the namespace as one store. */
  all(here: InstanceStore<never>): InstanceStore<never> {
    const layout = this.#layout;
    if (layout.names.length === 1) return here;
    const stores = new Map(
      layout.names.map((name) => [
        name,
        name === this.#name ? here : siblingStore(() => this.#object(name)),
      ]),
    );
    const named = (name: string) => stores.get(name) as InstanceStore<never>;
    return spreadStore({
      spread: this.spread,
      of: (target) => named(layout.nameOf(target)),
      all: (workflow) => layout.namesOf(workflow).map(named),
      // Where the id does not decide about the object, there is nothing to choose.
      ...(layout.namesOf("").length > 1
        ? { fits: (target) => layout.nameOf(target) === this.#name }
        : {}),
    });
  }

  /**
   * Refuses to serve where instances were spread in another way, because they would not be found. A new object has no
   * record of its own and asks the first one.
   */
  async check(
    storage: Pick<DurableObjectStorage, "get" | "put">,
    hasTables: boolean,
  ): Promise<void> {
    const recorded = (await storage.get<string>(SPREAD_KEY)) ?? (hasTables ? "shards: 1" : null);
    if (this.#name === null) throw this.#stranger();
    const [first] = this.#layout.names;
    const isNew = recorded === null && this.#name !== first;
    const known = isNew ? await this.#knownBy(first as string) : recorded;
    if (known !== null && known !== this.spread) {
      throw new IncompatibleDatabaseError(
        `the instances of this namespace were spread with ${known}, and would not be found with ` +
          `${this.spread}: go back to that, or use a new class`,
      );
    }
    if (recorded === null) await storage.put(SPREAD_KEY, this.spread);
  }

  #stranger(): IncompatibleDatabaseError {
    return new IncompatibleDatabaseError(
      this.#namespace === undefined
        ? `${this.spread} needs namespace, such as env.PAWL: objects ask each other`
        : `this object is none of those of ${this.spread}, or namespace leads to another class`,
    );
  }

  async #knownBy(name: string): Promise<string> {
    return (await askSibling(() => this.#object(name), { verb: "spread", args: [] })) as string;
  }

  #object(name: string): WorkflowsObject {
    return objectIn(this.#namespace as WorkflowsNamespace, name);
  }
}
