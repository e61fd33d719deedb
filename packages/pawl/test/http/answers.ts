import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
import { commonErrors, contract, type Operation, type Route } from "../../src/http/contract.js";
import { openApiOf } from "../../src/http/openapi.js";
import { workflowErrorStatus, type WorkflowErrorCode } from "../../src/model/errors.js";

export const routes = Object.entries(contract) as [Operation, Route][];

const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const ajv = new Ajv2020({ strict: false, formats: { "date-time": dateTime } });
const document = openApiOf(contract, "/api") as Document;
ajv.addSchema(document, "api");

type Content = { readonly content?: { readonly "application/json"?: { schema: object } } };
type Document = {
  readonly paths: Record<
    string,
    Record<string, { requestBody?: Content; responses: Record<string, Content> }>
  >;
};

function operationAt({ path, method }: Route) {
  return document.paths[path.replaceAll(/:(\w+)/g, "{$1}")]![method.toLowerCase()]!;
}

function isValid(schema: object, value: unknown): true | string {
  const inDocument = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"api#/')) as object;
  const validate = ajv.compile(inDocument);
  return validate(value) || ajv.errorsText(validate.errors);
}

/** Returns whether the published document accepts a request's body. */
export function isRequestOf(route: Route, body: unknown): boolean {
  const { schema } = operationAt(route).requestBody!.content!["application/json"]!;
  return isValid(schema, body) === true;
}

/** Expects an answer of this route as the document has it: a known status, and a body of its schema. */
export function expectAnswerOf(route: Route, status: number, text: string): void {
  const { responses } = operationAt(route);
  expect(Object.keys(responses), text).toContain(String(status));
  const schema = responses[status]?.content?.["application/json"]?.schema;
  if (schema === undefined) return;
  const body: unknown = JSON.parse(text);
  expect(isValid(schema, body), text).toBe(true);
  if (status >= 400) expectError(status, text, [...commonErrors, ...route.errors]);
}

export function expectError(
  status: number,
  text: string,
  codes: readonly WorkflowErrorCode[] = Object.keys(workflowErrorStatus) as WorkflowErrorCode[],
): void {
  const { code, message, ...rest } = JSON.parse(text) as Record<string, unknown>;
  expect(codes, text).toContain(code);
  expect(workflowErrorStatus[code as WorkflowErrorCode], text).toBe(status);
  expect(message).toEqual(expect.any(String));
  expect(rest).toEqual({});
  expect(text).not.toMatch(/SELECT|INSERT|UPDATE |sqlite|node_modules|\.ts:\d|\n {2,}at /i);
}
