import { readFileSync } from "node:fs";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { workflowErrorStatus, type WorkflowErrorCode } from "../model/errors.js";
import { commonErrors, contract, type Route } from "./contract.js";
import { openApiOf } from "./openapi.js";

const routes = Object.entries(contract) as [string, Route][];
const document = openApiOf(contract, "/api");
// When this fails: npm run check shows the difference, and this command rewrites the files:
const rewrite = "npx vitest run --project unit http/contract -u";

test("the document is valid OpenAPI 3.1", async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(JSON.parse(JSON.stringify(document)));
  expect(errors).toBeUndefined();
  expect([valid, validator.version]).toEqual([true, "3.1"]);
});

test(`the contract is as published (rewrite it with: ${rewrite})`, async () => {
  const golden = `${JSON.stringify(document, null, 2)}\n`;
  await expect(golden).toMatchFileSnapshot("golden/openapi.json");
});

test(`docs/http-api.md has the contract's tables (rewrite them with: ${rewrite})`, async () => {
  const page = "../../../../docs/http-api.md";
  const before = readFileSync(new URL(page, import.meta.url), "utf8");
  const after = withSection(withSection(before, "routes", routeTable()), "errors", errorTable());
  await expect(after).toMatchFileSnapshot(page);
});

test("every error code belongs to a route, and every route has a path of its own", () => {
  const documented = new Set<string>([
    ...commonErrors,
    ...routes.flatMap(([, { errors }]) => errors),
    // These are for paths and methods that are not routes.
    "NOT_FOUND",
    "METHOD_NOT_ALLOWED",
  ]);
  expect(documented).toEqual(new Set(Object.keys(workflowErrorStatus)));
  const places = routes.map(([, { method, path }]) => `${method} ${path}`);
  expect(new Set(places).size).toBe(places.length);
});

/** Replaces what stands between `<!-- name -->` and `<!-- /name -->`. */
function withSection(page: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name}: rendered from the contract -->`, `<!-- /${name} -->`];
  const [before, rest = ""] = page.split(start);
  const [, after] = rest.split(end);
  expect(after, `the page has no section ${name}`).toBeDefined();
  return `${before}${start}\n\n${content}\n\n${end}${after}`;
}

function routeTable(): string {
  const rows = routes.map(([, route]) => [
    `\`${route.method} ${route.path}\``,
    `\`${route.group}\``,
    route.summary,
    inputOf(route),
    route.errors.map((code) => `\`${code}\``).join(" "),
  ]);
  return table([["route", "policy", "what it does", "takes", "errors of its own"], ...rows]);
}

function inputOf({ body, query, keyed }: Route): string {
  const fields = [
    ...Object.keys(query ?? {}).map((name) => `\`?${name}\``),
    ...Object.keys(body?.json.properties ?? {}).map((name) => `\`${name}\``),
    ...(keyed === true ? ["`Idempotency-Key`"] : []),
  ];
  return fields.join(" ");
}

function errorTable(): string {
  const byStatus = new Map<number, WorkflowErrorCode[]>();
  for (const [code, status] of Object.entries(workflowErrorStatus)) {
    byStatus.set(status, [...(byStatus.get(status) ?? []), code as WorkflowErrorCode]);
  }
  const rows = Array.from(byStatus, ([status, codes]) => [
    String(status),
    codes.map((code) => `\`${code}\``).join(" "),
  ]);
  return table([["status", "codes"], ...rows]);
}

function table([header = [], ...rows]: string[][]): string {
  return [header, header.map(() => "---"), ...rows]
    .map((row) => `| ${row.join(" | ")} |`)
    .join("\n");
}
