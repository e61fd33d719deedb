import { jsonPlusCodec } from "pawl";

/** The fields that hold users' values. */
const users = new Set(["output", "result", "payload"]);

/**
 * Turns an answer into JSON as the HTTP API writes it: times in ISO 8601, and users' values tagged where JSON cannot
 * hold them.
 */
export function wire(answer: unknown): unknown {
  if (answer instanceof Date) return answer.toISOString();
  if (Array.isArray(answer)) return answer.map(wire);
  if (typeof answer !== "object" || answer === null) return answer;
  return Object.fromEntries(
    Object.entries(answer).map(([key, value]) => [
      key,
      users.has(key) ? tagged(value) : wire(value),
    ]),
  );
}

function tagged(value: unknown): unknown {
  return JSON.parse(textOf(value));
}

/** Writes a user's value on one line. */
export function textOf(value: unknown): string {
  return jsonPlusCodec.encode(value, { what: "the value", maxBytes: Infinity });
}
