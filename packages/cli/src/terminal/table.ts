import { stripVTControlCharacters } from "node:util";
import { cut } from "./text.js";

const GAP = "  ";
const NARROWEST = 12;

/** Lays rows out in columns that are as wide as their content. The last column is cut where the terminal ends. */
export function table(rows: readonly (readonly string[])[], width: number | undefined): string[] {
  const columns = Math.max(0, ...rows.map(({ length }) => length));
  const widths = Array.from({ length: Math.max(0, columns - 1) }, (_, n) =>
    Math.max(...rows.map((row) => lengthOf(row[n] ?? ""))),
  );
  const taken = widths.reduce((sum, each) => sum + each + GAP.length, 0);
  const left = width === undefined ? Infinity : Math.max(NARROWEST, width - taken);
  return rows.map((row) => {
    const cells = widths.map((each, n) => {
      const cell = row[n] ?? "";
      return cell + " ".repeat(each - lengthOf(cell));
    });
    const last = row[columns - 1] ?? "";
    const fitting = lengthOf(last) > left ? cut(stripVTControlCharacters(last), left) : last;
    return [...cells, fitting].join(GAP).trimEnd();
  });
}

function lengthOf(text: string): number {
  return Array.from(stripVTControlCharacters(text)).length;
}
