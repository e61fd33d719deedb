import { describe, expect, it } from "vitest";
import {
  instanceStatusNames,
  isInstanceStatusName,
  isTerminal,
  liveStates,
  terminalStates,
} from "./status.js";

describe("status words", () => {
  it("are those of the specification", () => {
    expect(instanceStatusNames.toSorted()).toEqual([
      "complete",
      "errored",
      "paused",
      "queued",
      "running",
      "terminated",
      "unknown",
      "waiting",
      "waitingForPause",
    ]);
  });

  it("are live or terminal, never both, and unknown is neither", () => {
    expect([...liveStates, ...terminalStates, "unknown"].toSorted()).toEqual(
      instanceStatusNames.toSorted(),
    );
  });

  it("are terminal when the instance has ended", () => {
    expect(instanceStatusNames.filter(isTerminal)).toEqual(["complete", "errored", "terminated"]);
  });

  it("are distinguished from other words", () => {
    expect(instanceStatusNames.every(isInstanceStatusName)).toBe(true);
    for (const other of ["completed", "Queued", "", "toString", undefined, 1]) {
      expect(isInstanceStatusName(other)).toBe(false);
    }
  });
});
