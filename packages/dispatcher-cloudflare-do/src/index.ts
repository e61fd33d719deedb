export { workflowsBinding } from "./binding.js";
export {
  workflowsDurableObject,
  type WorkflowsObjectClass,
  type WorkflowsObjectOptions,
} from "./host.js";
export { workflowsFetch, type WorkflowsNamespace, type WorkflowsObject } from "./namespace.js";
