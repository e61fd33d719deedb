export { workflowsBinding } from "./binding.js";
export {
  workflowsDurableObject,
  type WorkflowsObjectClass,
  type WorkflowsObjectOptions,
} from "./host.js";
export type { Sharding } from "./layout.js";
export {
  workflowsFetch,
  type SpreadOptions,
  type WorkflowsNamespace,
  type WorkflowsObject,
} from "./namespace.js";
