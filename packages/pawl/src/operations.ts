// For hosts, transports and tools: what can be asked of an instance, as data, and the words for its status.

export { encodedAs } from "./authoring/binding-options.js";
export { bindingsByKey } from "./authoring/bindings-by-key.js";
export { carry, Carrier, InstanceHandle, type HandleClass } from "./instances/methods.js";
export {
  inputFields,
  instanceOperations,
  isOperationName,
  operationEntries,
  type InstanceMethods,
  type InstanceOperation,
  type InstanceOperations,
  type OperationName,
} from "./instances/operations.js";
export type { WireForm } from "./instances/wire-forms.js";
export {
  instanceStatusNames,
  isTerminal,
  liveStates,
  terminalStates,
  type InstanceStatusName,
} from "./model/status.js";
export { stepTraits, type StepTraits } from "./model/step-types.js";
