import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeError, describeError, encodeError, errorTextMaxBytes } from "./error-codec.js";
import { isNonRetryable, NonRetryableError } from "./errors.js";

const roundTrip = (thrown: unknown): unknown => decodeError(encodeError(thrown));
const describeThrown = (thrown: unknown): unknown => describeError(encodeError(thrown));

describe("encodeError", () => {
  it("keeps class, name, message, code and cause of an error", () => {
    const cause = Object.assign(new RangeError("inner"), { code: "EINNER" });
    const error = Object.assign(new TypeError("outer", { cause }), { code: 42, name: "Custom" });
    const back = roundTrip(error) as TypeError & { code: number };
    expect(back).toBeInstanceOf(TypeError);
    expect(back).toMatchObject({ name: "Custom", message: "outer", code: 42 });
    expect(back.cause).toBeInstanceOf(RangeError);
    expect(back.cause).toMatchObject({ message: "inner", code: "EINNER" });
    expect(isNonRetryable(roundTrip(new NonRetryableError("", "Mine")))).toBe(true);
  });

  it.each([undefined, null, 0, false, "", "boom", Number.NaN, 10n, { reason: "x" }, ["x"]])(
    "keeps a thrown %s",
    (thrown) => {
      expect(roundTrip(thrown)).toStrictEqual(thrown);
    },
  );

  it("describes a thrown value that cannot be stored", () => {
    for (const [thrown, found] of [
      [() => 1, "a function at $"],
      [Symbol("s"), "a symbol at $"],
      [{ f: () => 1 }, "a function at $.f"],
      [new URL("https://example.com"), 'an instance of "URL" at $'],
    ] as const) {
      const back = roundTrip(thrown) as Error;
      expect(back).toBeInstanceOf(Error);
      expect(back.message).toBe(`thrown value: cannot store ${found}`);
      expect(isNonRetryable(back)).toBe(false); // the author threw it, so it is retried like any other
    }
  });

  it("treats an error-like object as an error", () => {
    class ApiFault {
      name = "ApiFault";
      message = "quota exceeded";
      code = 429;
      retry(): void {}
    }
    const back = roundTrip(new ApiFault());
    expect(back).toBeInstanceOf(Error);
    expect(back).toMatchObject({ name: "ApiFault", message: "quota exceeded", code: 429 });
    expect(roundTrip({ message: "plain" })).toStrictEqual({ message: "plain" });
  });

  it("describes a cause that cannot be stored", () => {
    const back = roundTrip(new TypeError("outer", { cause: { socket: new WeakMap() } })) as Error;
    expect(back).toBeInstanceOf(TypeError);
    expect((back.cause as Error).message).toContain('an instance of "WeakMap" at $.socket');
  });

  it("cuts long messages, names and codes, and says so", () => {
    const error = new Error(`${"x".repeat(8_191)}😀${"y".repeat(1_000_000)}`);
    error.name = "N".repeat(1_000);
    const back = roundTrip(Object.assign(error, { code: "C".repeat(1_000) })) as Error;
    expect(back.message).toBe(`${"x".repeat(8_191)}… (1008193 characters)`);
    expect(back.name).toBe(`${"N".repeat(256)}… (1000 characters)`);
    expect(back).toMatchObject({ code: `${"C".repeat(256)}… (1000 characters)` });
  });

  it("cuts off cycles and long chains of causes", () => {
    const loop = new Error("loop");
    loop.cause = new Error("inner", { cause: loop });
    const back = roundTrip(loop) as { cause: Error };
    expect(back.cause.message).toBe("inner");
    expect(back.cause.cause).toBe(undefined);

    let chain = new Error("root");
    for (let i = 0; i < 1_000; i++) chain = new Error(`${i}`, { cause: chain });
    let depth = 0;
    for (let e: unknown = roundTrip(chain); e instanceof Error; e = e.cause) depth++;
    expect(depth).toBe(32);
  });

  it("keeps the first errors of a large AggregateError", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => new TypeError(`e${i}`));
    const back = roundTrip(new AggregateError(many, "many")) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.errors).toHaveLength(31);
    expect(back.errors[0]).toBeInstanceOf(TypeError);
    expect(roundTrip(new AggregateError([undefined, 1], "two"))).toMatchObject({ errors: [1] });
  });

  it("survives errors that cannot be read", () => {
    const angry = new Error("hidden");
    for (const key of ["name", "message", "code", "cause", "errors"]) {
      Object.defineProperty(angry, key, {
        get() {
          throw new Error("no");
        },
      });
    }
    expect(String(roundTrip(angry))).toBe("Error");

    const { proxy, revoke } = Proxy.revocable(new Error("gone"), {});
    revoke();
    expect((roundTrip(proxy) as Error).message).toContain("cannot be read");

    const trap = new Proxy(new Error("e"), {
      getPrototypeOf() {
        throw new Error("no");
      },
    });
    expect(roundTrip(trap)).toBeInstanceOf(Error);
  });

  it("always stays below its size limit, whatever must be escaped", () => {
    const worst = "\u0000".repeat(100_000);
    let error: Error = new AggregateError(
      Array.from({ length: 100 }, () => new Error(worst, { cause: worst })),
      worst,
    );
    for (let i = 0; i < 100; i++) error = new Error(worst, { cause: error });
    error.name = worst;
    Object.assign(error, { code: worst });
    for (const thrown of [error, worst, [worst], new Error(worst), { worst: new Error(worst) }]) {
      const text = encodeError(thrown);
      expect(Buffer.byteLength(text)).toBeLessThanOrEqual(errorTextMaxBytes);
      expect(decodeError(text)).toBeInstanceOf(Error);
    }
  });

  it("keeps at least the message when a cause is nested very deep", () => {
    let deep: unknown = 1;
    for (let i = 0; i < 1_000; i++) deep = [deep];
    expect((roundTrip(new RangeError("kept", { cause: deep })) as Error).message).toBe("kept");
  });

  it("never fails", () => {
    const hostile = fc.func(fc.anything());
    const thrown = fc.oneof(
      fc.anything({ withBigInt: true, withMap: true, withNullPrototype: true }),
      hostile,
      fc
        .record({ name: fc.anything(), message: fc.anything(), cause: fc.anything() })
        .map((fields) => {
          const error = new Error("e");
          for (const [key, value] of Object.entries(fields))
            Object.defineProperty(error, key, { value });
          return error;
        }),
    );
    fc.assert(
      fc.property(thrown, (value) => {
        const text = encodeError(value);
        expect(encodeError(decodeError(text))).toBe(text);
        const { name, message } = describeError(text);
        expect([typeof name, typeof message]).toEqual(["string", "string"]);
      }),
      { numRuns: 500 },
    );
  });
});

describe("describeError", () => {
  it("shows name, message and code of an error", () => {
    expect(describeThrown(new TypeError("no"))).toEqual({ name: "TypeError", message: "no" });
    expect(describeThrown(new NonRetryableError("", "Mine"))).toEqual({
      name: "Mine",
      message: "",
    });
    expect(describeThrown(Object.assign(new Error("no"), { code: "ECONNREFUSED" }))).toEqual({
      name: "Error",
      message: "no",
      code: "ECONNREFUSED",
    });
  });

  it("shows any other thrown value", () => {
    expect(describeThrown("boom")).toEqual({ name: "Error", message: "boom" });
    expect(describeThrown(undefined)).toEqual({
      name: "Error",
      message: "a value was thrown that is no error: undefined",
    });
    expect(describeThrown({ reason: 1 })).toEqual({
      name: "Error",
      message: "a value was thrown that is no error: { reason: 1 }",
    });
    expect(describeThrown("")).toEqual({
      name: "Error",
      message: 'a value was thrown that is no error: ""',
    });
    expect(describeThrown({ code: 4, message: "busy", name: "GrpcError" })).toEqual({
      name: "GrpcError",
      message: "busy",
      code: 4,
    });
  });

  it("shows why a stored text cannot be read", () => {
    expect(describeError("banana")).toEqual({
      name: "SerializationError",
      message: "cannot read a value: the text is not JSON",
    });
  });
});
