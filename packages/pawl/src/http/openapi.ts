import { workflowErrorStatus, type WorkflowErrorCode } from "../model/errors.js";
import { errorBody, streamedStatus, streamedStep } from "./answer-schemas.js";
import { commonErrors, type Route } from "./contract.js";
import { namedSchemas, refer, type JsonSchema, type WireSchema } from "../model/schema.js";

type Content = { readonly schema: JsonSchema };

/** Renders the contract as an OpenAPI 3.1 document. */
export function openApiOf(contract: Readonly<Record<string, Route>>, basePath: string): object {
  const routes = Object.entries(contract);
  const paths: Record<string, Record<string, object>> = {};
  for (const [operation, route] of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(operation, route) };
  }
  const schemas = routes.flatMap(([, { body, response }]) =>
    [body, response].filter((schema) => schema !== undefined),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Pawl",
      version: "1",
      description:
        'Durable workflows. Values that JSON cannot hold are tagged: {"$pawl":"Date","value":"2026-01-31T12:00:00.000Z"}.',
    },
    servers: [{ url: basePath === "" ? "/" : basePath }],
    paths,
    components: {
      schemas: Object.fromEntries(
        namedSchemas([...schemas, errorBody, streamedStatus, streamedStep]),
      ),
    },
  };
}

function operationOf(operationId: string, route: Route): object {
  return {
    operationId,
    summary: route.summary,
    tags: [route.group],
    parameters: [
      ...Array.from(route.path.matchAll(/:(\w+)/g), ([, name = ""]) => ({
        name,
        in: "path",
        required: true,
        schema: { type: "string" },
      })),
      ...Object.entries(route.query ?? {}).map(([name, schema]) => ({
        name,
        in: "query",
        schema: refer(schema),
      })),
      ...(route.keyed === true ? [idempotencyKey] : []),
      ...(route.stream === true ? [lastEventId] : []),
    ],
    ...(route.body === undefined
      ? {}
      : { requestBody: { content: { "application/json": contentOf(route.body) } } }),
    responses: { ...success(route), ...failures(route) },
  };
}

const idempotencyKey = {
  name: "Idempotency-Key",
  in: "header",
  description: "Sent again with the same key, the request happens once.",
  schema: { type: "string", pattern: "^[a-zA-Z0-9_-]{1,64}$" },
};

const lastEventId = {
  name: "Last-Event-ID",
  in: "header",
  description: "The id of the last message that was received.",
  schema: { type: "string" },
};

function success({ response, stream }: Route): Record<string, object> {
  if (stream === true) {
    return {
      200: {
        description: "Messages: `status` with a StreamedStatus, `step` with a StreamedStep.",
        content: { "text/event-stream": { schema: { type: "string" } } },
      },
      204: { description: "The cursor is that of the end." },
    };
  }
  return {
    200: {
      description: "Done.",
      ...(response === undefined ? {} : { content: { "application/json": contentOf(response) } }),
    },
  };
}

function failures({ errors }: Route): Record<string, object> {
  const byStatus = new Map<number, WorkflowErrorCode[]>();
  for (const code of [...commonErrors, ...errors]) {
    const status = workflowErrorStatus[code];
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    Array.from(byStatus, ([status, codes]) => [
      status,
      { description: codes.join(", "), content: { "application/json": contentOf(errorBody) } },
    ]),
  );
}

function contentOf(schema: WireSchema<unknown>): Content {
  return { schema: refer(schema) };
}
