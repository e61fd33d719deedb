import { decodeCursor, encodeCursor } from "./cursor.js";
import type { ListQuery } from "./store.js";

/** Where an instance stands in a list, which is ordered by creation and then by internal id. */
export type ListPosition = { readonly at: number; readonly iid: string };

type Question = Pick<ListQuery, "workflow" | "status" | "order">;

/** The cursor of the page that follows this position. */
export function listCursor(query: Question, { at, iid }: ListPosition): string {
  return encodeCursor(about(query), [at, iid]);
}

export function listPosition(query: Question, cursor: string): ListPosition {
  const [at, iid] = decodeCursor(cursor, about(query), ["integer", "string"]);
  return { at: at as number, iid: iid as string };
}

/** The cursor of a list over several stores: a position in each. `spread` tells how instances are spread over them. */
export function spreadListCursor(
  query: Question,
  spread: string,
  positions: readonly ListPosition[],
): string {
  const flat = positions.flatMap(({ at, iid }) => [at, iid]);
  return encodeCursor(about(query, spread), flat);
}

export function spreadListPositions(
  query: Question,
  spread: string,
  count: number,
  cursor: string,
): ListPosition[] {
  const shape = Array.from({ length: 2 * count }, (_, i) => (i % 2 === 0 ? "integer" : "string"));
  const flat = decodeCursor(cursor, about(query, spread), shape);
  return Array.from({ length: count }, (_, i) => ({
    at: flat[2 * i] as number,
    iid: flat[2 * i + 1] as string,
  }));
}

export function comparePositions(
  order: ListQuery["order"],
  a: ListPosition,
  b: ListPosition,
): number {
  const later = a.at === b.at ? (a.iid === b.iid ? 0 : a.iid < b.iid ? -1 : 1) : a.at - b.at;
  return order === "oldest" ? later : -later;
}

function about({ workflow, status, order }: Question, ...more: string[]): string {
  return JSON.stringify(["list", workflow, status ?? null, order, ...more]);
}
