import { type } from "arktype";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { validate, type Schema } from "./schema.js";

const libraries: Record<string, Schema> = {
  zod: z.object({ items: z.array(z.object({ n: z.number() })), on: z.boolean().default(true) }),
  valibot: v.object({
    items: v.array(v.object({ n: v.number() })),
    on: v.optional(v.boolean(), true),
  }),
  arktype: type({ items: type({ n: "number" }).array(), on: "boolean = true" }),
};

describe.each(Object.entries(libraries))("%s", (_name, schema) => {
  test("returns what the schema makes of the value", async () => {
    const validated = await validate(schema, { items: [{ n: 1 }] });
    expect(validated).toEqual({ ok: true, value: { items: [{ n: 1 }], on: true } });
  });

  test("lists every problem with its path", async () => {
    const validated = await validate(schema, { items: [{ n: 1 }, { n: "2" }], on: "yes" });
    expect(validated).toEqual({
      ok: false,
      message: expect.stringMatching(/items\[1\]\.n: .+; .*on: /),
    });
  });
});

test("validate waits for asynchronous schemas", async () => {
  const free = z.string().refine(async (name) => name !== "taken", { error: "is taken" });
  expect(await validate(free, "new")).toEqual({ ok: true, value: "new" });
  expect(await validate(free, "taken")).toEqual({ ok: false, message: "is taken" });
});

test("validate shortens a long list of problems", async () => {
  const validated = await validate(z.array(z.number()), Array(10_000).fill("x"));
  expect(validated).toMatchObject({ message: expect.stringMatching(/; and 9990 more$/) });
});

test("validate shows keys that are objects or symbols", async () => {
  const schema: Schema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: () => ({ issues: [{ path: [{ key: "a" }, Symbol("b")], message: "no" }] }),
    },
  };
  expect(await validate(schema, 1)).toEqual({ ok: false, message: "a.Symbol(b): no" });
});
