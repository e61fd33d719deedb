import type { InstanceStatus } from "../authoring/bindings.js";
import type { Codec } from "../model/codec.js";
import { describeError } from "../model/error-codec.js";
import type { InstanceRecord } from "../store/records.js";

export function instanceStatusOf(
  { status, error, output }: Pick<InstanceRecord, "status" | "error" | "output">,
  codec: Codec,
): InstanceStatus {
  return {
    status,
    ...(error === null ? {} : { error: describeError(error) }),
    ...(output === null ? {} : { output: codec.decode(output) }),
  };
}
