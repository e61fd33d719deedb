import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const folder = new URL("./", import.meta.url);

test("no source asks for the name of a dialect: it asks for a capability", () => {
  const sources = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (file) => file.endsWith(".ts") && !file.endsWith(".test.ts"),
  );
  expect(sources).toContain("store.ts");
  const asking = sources.filter((file) =>
    /dialect\.name\b|\bname\b[^;]*\} = (sql\.)?dialect\b/.test(
      readFileSync(new URL(file, folder), "utf8"),
    ),
  );
  expect(asking).toEqual([]);
});
