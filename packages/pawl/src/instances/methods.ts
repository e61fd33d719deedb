import { operationEntries, type InstanceMethods, type OperationName } from "./operations.js";

/** The key under which a handle takes its operations to where they are performed. */
export const carry: unique symbol = Symbol("carry");

/**
 * A handle of an instance, with one method per operation. All the methods do the same: they pass themselves on to
 * `carry`, the one thing in which handles differ. They stand on the prototype, so that a handle costs no more than one
 * whose methods are written out.
 */
export abstract class Carrier {
  /** `more` is what a handle's methods take after the operation's own input. */
  abstract [carry](name: OperationName, input: unknown, more: unknown): Promise<unknown>;
}

for (const [name, { input }] of operationEntries) {
  const methods = {
    async [name](this: Carrier, ...given: unknown[]): Promise<unknown> {
      return input === undefined
        ? this[carry](name, undefined, given[0])
        : this[carry](name, given[0], given[1]);
    },
  };
  const value = methods[name];
  Object.defineProperty(Carrier.prototype, name, { value, writable: true, configurable: true });
}

/** The class of handles with methods of these types. */
export type HandleClass<Methods> = abstract new () => Carrier & Methods;

export const InstanceHandle = Carrier as HandleClass<InstanceMethods>;
