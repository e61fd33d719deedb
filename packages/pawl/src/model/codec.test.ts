import { isDeepStrictEqual } from "node:util";
import { runInNewContext } from "node:vm";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { jsonPlusCodec } from "./codec.js";
import {
  isNonRetryable,
  NonRetryableError,
  PayloadTooLargeError,
  SerializationError,
  StepTimeoutError,
  ValidationError,
  WorkflowError,
} from "./errors.js";

const mebibyte = 1_048_576;

const encode = (value: unknown, maxBytes = mebibyte): string =>
  jsonPlusCodec.encode(value, { what: 'step "charge"', maxBytes });
const decode = (text: string): unknown => jsonPlusCodec.decode(text);
const roundTrip = (value: unknown): unknown => decode(encode(value));

function refusal(value: unknown): string {
  try {
    encode(value);
  } catch (error) {
    expect(error).toBeInstanceOf(SerializationError);
    expect(isNonRetryable(error)).toBe(true);
    return (error as Error).message;
  }
  throw new Error("was not refused");
}

function nested(levels: number, leaf: unknown): unknown {
  let value = leaf;
  for (let i = 0; i < levels; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

describe("plain JSON", () => {
  it.each([
    null,
    true,
    0,
    -1.5e300,
    "",
    "text",
    [],
    {},
    [1, [2, []]],
    { b: 1, a: { c: [null] }, 2: "two", 1: "one" },
    { "": 1, "a b": 2, 'quo"te': 3 },
    { $: 1, pawl: 2, "$pawl ": 3, $Pawl: 4, a$pawl: 5 },
  ])("is written as JSON.stringify writes it: %j", (value) => {
    expect(encode(value)).toBe(JSON.stringify(value));
    expect(roundTrip(value)).toStrictEqual(value);
  });

  it("is written as JSON.stringify writes it, for any JSON value", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const withoutMinusZero: unknown = JSON.parse(JSON.stringify(value));
        expect(encode(withoutMinusZero)).toBe(JSON.stringify(value));
        expect(roundTrip(withoutMinusZero)).toStrictEqual(withoutMinusZero);
      }),
    );
  });
});

describe("the codec, where JSON would lose a value,", () => {
  it("keeps undefined: alone, in objects, in arrays", () => {
    expect(encode(undefined)).toBe('{"$pawl":"undefined"}');
    expect(roundTrip(undefined)).toBe(undefined);
    expect(roundTrip({ a: undefined, b: [undefined, 1] })).toStrictEqual({
      a: undefined,
      b: [undefined, 1],
    });
    expect(Object.keys(roundTrip({ a: undefined }) as object)).toEqual(["a"]);
  });

  it("fills the holes of sparse arrays with undefined", () => {
    const sparse = [1];
    sparse[2] = 3;
    expect(roundTrip(sparse)).toStrictEqual([1, undefined, 3]);
  });

  it.each([Number.NaN, Infinity, -Infinity, -0])("keeps the number %s", (number) => {
    expect(roundTrip(number)).toBe(number);
    expect(roundTrip([number])).toStrictEqual([number]);
  });

  it.each([0n, -1n, 2n ** 64n, -(10n ** 300n)])("keeps the bigint %s", (bigint) => {
    expect(roundTrip(bigint)).toBe(bigint);
  });

  it("keeps dates, in readable form", () => {
    expect(encode(new Date(0))).toBe('{"$pawl":"Date","value":"1970-01-01T00:00:00.000Z"}');
    for (const ms of [0, 1, -1, 1_700_000_000_123, 8.64e15, -8.64e15, Number.NaN]) {
      expect(roundTrip(new Date(ms))).toStrictEqual(new Date(ms));
    }
  });

  it("keeps maps and sets, with any keys and in order", () => {
    const map = new Map<unknown, unknown>([
      ["z", 1],
      [{ id: 1 }, new Map([[undefined, new Set([1n])]])],
      [Number.NaN, new Date(5)],
      ["__proto__", "data"],
    ]);
    expect(roundTrip(map)).toStrictEqual(map);
    expect([...(roundTrip(new Set(["b", "a"])) as Set<string>)]).toEqual(["b", "a"]);
    expect(roundTrip(new Map())).toStrictEqual(new Map());
  });

  it("keeps bytes of every kind", () => {
    const { buffer } = new Uint8Array([0, 255, 128, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    for (const value of [
      buffer,
      new DataView(buffer),
      new Int8Array(buffer),
      new Uint8Array(buffer),
      new Uint8ClampedArray(buffer),
      new Int16Array(buffer),
      new Uint16Array(buffer),
      new Int32Array(buffer),
      new Uint32Array(buffer),
      new Float32Array(buffer),
      new Float64Array([Math.PI, -0, Infinity]),
      new BigInt64Array(buffer),
      new BigUint64Array(buffer),
      new Uint8Array(0),
    ]) {
      expect(roundTrip(value)).toStrictEqual(value);
    }
    expect(encode(new Uint8Array([104, 105]))).toBe('{"$pawl":"Uint8Array","value":"aGk="}');
  });

  it("keeps many bytes", () => {
    const bytes = Uint8Array.from({ length: 500_000 }, (_, i) => (i * 7) % 256);
    expect(Buffer.from(roundTrip(bytes) as Uint8Array).equals(bytes)).toBe(true);
  });

  it("keeps only the bytes of a view, and Node's Buffer as a Uint8Array", () => {
    const view = new Uint8Array(1_000).fill(9).subarray(10, 12);
    expect(roundTrip(view)).toStrictEqual(new Uint8Array([9, 9]));
    expect(roundTrip(Buffer.from("hi"))).toStrictEqual(new Uint8Array([104, 105]));
  });
});

describe("errors as values", () => {
  it.each([
    new Error("e"),
    new TypeError("e"),
    new RangeError("e"),
    new SyntaxError("e"),
    new ReferenceError("e"),
    new EvalError("e"),
    new URIError("e"),
    new StepTimeoutError("e"),
    new ValidationError("e"),
    new NonRetryableError(""),
  ])("come back as their class: %s", (error) => {
    const back = roundTrip(error) as Error;
    expect(Object.getPrototypeOf(back)).toBe(Object.getPrototypeOf(error));
    expect(Object.prototype.toString.call(back)).toBe("[object Error]");
    expect(String(back)).toBe(String(error));
    expect(Object.keys(back)).toEqual([]);
    expect(isNonRetryable(back)).toBe(isNonRetryable(error));
  });

  it("are readable, without their stack", () => {
    expect(encode(new TypeError("no"))).toBe('{"$pawl":"Error","name":"TypeError","message":"no"}');
    expect((roundTrip(new TypeError("no")) as Error).stack).toBe("TypeError: no");
    expect((roundTrip(new NonRetryableError("no", "Mine")) as Error).stack).toBe("Mine: no");
  });

  it("keep name, code and cause", () => {
    const cause = Object.assign(new RangeError("inner"), { code: 7 });
    const error = Object.assign(new Error("outer", { cause }), {
      code: "ECONNRESET",
      name: "NetworkError",
      request: () => "not data of an error",
    });
    const back = roundTrip(error) as typeof error;
    expect(back).toBeInstanceOf(Error);
    expect(back).toMatchObject({ name: "NetworkError", message: "outer", code: "ECONNRESET" });
    expect(back.cause).toBeInstanceOf(RangeError);
    expect(back.cause).toMatchObject({ message: "inner", code: 7 });
    expect("request" in back).toBe(false);
    expect(roundTrip(new Error("e", { cause: new Map([[1, "plain"]]) }))).toMatchObject({
      cause: new Map([[1, "plain"]]),
    });
    expect("cause" in (roundTrip(new Error("e")) as Error)).toBe(false);
  });

  it("keep all errors of an AggregateError", () => {
    const back = roundTrip(new AggregateError([new TypeError("a"), "b"], "both")) as AggregateError;
    expect(back).toBeInstanceOf(AggregateError);
    expect(back.message).toBe("both");
    expect(back.errors).toHaveLength(2);
    expect(back.errors[0]).toBeInstanceOf(TypeError);
    expect(back.errors[1]).toBe("b");
    expect(Object.keys(back)).toEqual([]);
  });

  it("keep the brand of a NonRetryableError, its subclasses and other copies", () => {
    class Declined extends NonRetryableError {}
    const foreign = Object.assign(new Error("no"), {
      [Symbol.for("pawl.NonRetryableError")]: true,
      name: "Foreign",
    });
    for (const error of [new NonRetryableError("no", "Mine"), new Declined("no"), foreign]) {
      const back = roundTrip(error) as Error;
      expect(back).toBeInstanceOf(NonRetryableError);
      expect(isNonRetryable(back)).toBe(true);
      expect(back.name).toBe(error.name);
    }
  });

  it("keep code and status of a WorkflowError", () => {
    const back = roundTrip(new WorkflowError("INSTANCE_NOT_FOUND", "no"));
    expect(back).toBeInstanceOf(WorkflowError);
    expect(back).toMatchObject({ code: "INSTANCE_NOT_FOUND", status: 404, message: "no" });
  });

  it("of unknown classes become Errors with their name, even if they are named like ours", () => {
    class HttpError extends TypeError {
      override name = "HttpError";
    }
    expect(roundTrip(new HttpError("no"))).toBeInstanceOf(TypeError);
    expect((roundTrip(new HttpError("no")) as Error).name).toBe("HttpError");

    const zodLike = Object.assign(new Error("bad field"), { name: "ValidationError" });
    const back = roundTrip(zodLike) as Error;
    expect(back.name).toBe("ValidationError");
    expect(back).not.toBeInstanceOf(ValidationError);
    expect(isNonRetryable(back)).toBe(false);

    const ofAnotherRealm: unknown = runInNewContext(
      "Object.assign(Error('e'), { name: 'ValidationError' })",
    );
    expect(isNonRetryable(roundTrip(ofAnotherRealm))).toBe(false);
  });

  it("survive strange properties", () => {
    const strange = Object.assign(new Error("e"), { code: { not: "a code" }, name: 7 });
    Object.defineProperty(strange, "message", { value: null });
    expect(String(roundTrip(strange))).toBe("Error");
    expect("code" in (roundTrip(strange) as Error)).toBe(false);
    expect(roundTrip(Object.assign(new Error("e"), { code: -0 }))).toMatchObject({ code: 0 });
    const guarded = new Error("e");
    Object.defineProperty(guarded, "code", {
      get() {
        throw new Error("no");
      },
    });
    expect(String(roundTrip(guarded))).toBe("Error: e");
  });
});

describe("data that looks like a tag", () => {
  it.each([
    { $pawl: "undefined" },
    { $pawl: "Date", value: "1970-01-01T00:00:00.000Z" },
    { $pawl: 1 },
    { $$pawl: { $pawl: { $$$pawl: 1 } } },
    { a: 1, $pawl: 2, $$pawl: 3, b: new Date(0) },
    [{ $pawl: undefined }],
    new Map([[{ $pawl: "Map" }, { $$pawl: 1n }]]),
  ])("stays data: %j", (value) => {
    expect(roundTrip(value)).toStrictEqual(value);
    expect(encode(roundTrip(value))).toBe(encode(value));
  });

  it("keeps the order of its keys", () => {
    expect(Object.keys(roundTrip({ z: 1, $pawl: 2, a: 3 }) as object)).toEqual(["z", "$pawl", "a"]);
  });

  it("stays data when it holds encoded text", () => {
    const text = encode({ when: new Date(0) });
    expect(roundTrip({ text })).toEqual({ text });
    expect(roundTrip(JSON.parse(text))).toEqual(JSON.parse(text));
  });
});

describe("hostile keys", () => {
  const hostile = '{"__proto__":{"admin":true},"constructor":1,"toString":2,"hasOwnProperty":3}';

  it.each([
    hostile,
    hostile.replace("1", '{"$pawl":"undefined"}'),
    hostile.replace("true", '{"$pawl":"bigint","value":"1"}'),
    `{"$$pawl":0,${hostile.slice(1)}`,
    '{"__proto__":{"$pawl":"Map","value":[]},"$$pawl":1}',
  ])("are own properties: %s", (text) => {
    const value = decode(text) as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toContain("__proto__");
    expect(value["admin"]).toBe(undefined);
    expect(({} as Record<string, unknown>)["admin"]).toBe(undefined);
    expect(encode(value)).toBe(text);
  });
});

describe("text", () => {
  it.each(["\u0000", "\ud800", "\udc00\ud800", "a\udfffb", "😀", "\u2028", "\u007f", '"\\/\b\n'])(
    "%j survives, and nothing unstorable is written",
    (text) => {
      const encoded = encode({ [text]: text });
      expect(encoded).toBe(JSON.stringify({ [text]: text }));
      expect(encoded).toMatch(/^[^\p{Cs}]*$/u);
      expect(encoded.includes("\u0000")).toBe(false);
      expect(decode(encoded)).toStrictEqual({ [text]: text });
    },
  );
});

describe("objects", () => {
  it("without a prototype come back as plain ones", () => {
    const bare = Object.assign(Object.create(null) as object, { a: 1 });
    expect(roundTrip(bare)).toStrictEqual({ a: 1 });
  });

  it("are stored by their own enumerable string keys", () => {
    const value = { a: 1, [Symbol("s")]: 2 };
    Object.defineProperty(value, "hidden", { value: 3, enumerable: false });
    expect(roundTrip(value)).toStrictEqual({ a: 1 });
  });

  it("may share parts, which become separate copies", () => {
    const shared = { n: 1 };
    const back = roundTrip([shared, shared]) as [object, object];
    expect(back).toEqual([{ n: 1 }, { n: 1 }]);
    expect(back[0]).not.toBe(back[1]);
  });

  it("are new at every decode", () => {
    const text = encode({ when: new Date(0), list: [1] });
    expect(decode(text)).toStrictEqual(decode(text));
    expect(decode(text)).not.toBe(decode(text));
  });

  it("may be arrays of a subclass, as database drivers return", () => {
    class Rows extends Array<number> {
      command = "SELECT";
    }
    expect(roundTrip(Rows.from([1, 2]))).toStrictEqual([1, 2]);
  });

  it("may come from another realm", () => {
    const foreign: unknown = runInNewContext(
      "({ at: new Date(0), m: new Map([[1, [2]]]), s: new Set([3]), b: new Uint8Array([4]), e: new TypeError('e') })",
    );
    const back = roundTrip(foreign) as { e: Error };
    expect(back.e).toBeInstanceOf(TypeError);
    expect(back).toStrictEqual({
      at: new Date(0),
      m: new Map([[1, [2]]]),
      s: new Set([3]),
      b: new Uint8Array([4]),
      e: back.e,
    });
  });

  it("have each getter read once", () => {
    let reads = 0;
    const value = {
      get next() {
        return reads++ === 0 ? "once" : () => "never";
      },
    };
    expect(roundTrip(value)).toEqual({ next: "once" });
  });
});

describe("a value that cannot be stored", () => {
  class Customer {
    name = "Ada";
  }
  class Money extends Map<string, number> {}

  const cases: [value: unknown, found: string][] = [
    [() => 1, "a function at $"],
    [Customer, "a function at $"],
    [Symbol("s"), "a symbol at $"],
    [{ customer: { callback: () => 1 } }, "a function at $.customer.callback"],
    [{ toJSON: () => "text" }, "a function at $.toJSON"],
    [[1, [2, Symbol("s")]], "a symbol at $[1][1]"],
    [{ "a b": { 7: { __proto__$: () => 1 } } }, 'a function at $["a b"]["7"].__proto__$'],
    [{ c: new Customer() }, 'an instance of "Customer" at $.c'],
    [new Money(), 'an instance of "Money" at $'],
    [/x/, 'an instance of "RegExp" at $'],
    [{ u: new URL("https://example.com") }, 'an instance of "URL" at $.u'],
    [new WeakMap(), 'an instance of "WeakMap" at $'],
    [Object("boxed"), 'an instance of "String" at $'],
    [new SharedArrayBuffer(1), 'an instance of "SharedArrayBuffer" at $'],
    [Object.create({ inherited: 1 }), 'an instance of "Object" at $'],
    [Object.create(Object.create(null) as object), "an instance of Object at $"],
    [{ p: Promise.resolve(1) }, "a Promise (is an await missing?) at $.p"],
    [new Map([["k", () => 1]]), "a function at $[value of entry 0]"],
    [{ m: new Map([[1, 1], [() => 1, 1] as never]) }, "a function at $.m[key of entry 1]"],
    [new Set([{ a: () => 1 }]), "a function at $[item 0].a"],
    [new Error("e", { cause: { f: () => 1 } }), "a function at $.cause.f"],
    [new AggregateError([() => 1]), "a function at $.errors[0]"],
  ];
  it.each(cases.map(([value, found]) => ({ value, found })))("is $found", ({ value, found }) => {
    expect(refusal(value)).toBe(`step "charge": cannot store ${found}`);
  });

  it("is named by its place, even after siblings that can be stored", () => {
    expect(refusal({ a: { b: [1, { c: 2 }] }, d: [new Date(0), () => 1] })).toContain("at $.d[1]");
    const siblings = [[[1]], { a: { b: 1 } }, new Map([[1, [1]]]), new Set([[1]]), new Error("e")];
    for (const sibling of siblings) {
      expect(refusal({ sibling, d: new Customer() })).toMatch(/ at \$\.d$/);
    }
  });

  it("may be a cycle, which is named where it closes", () => {
    const self: Record<string, unknown> = { a: 1 };
    self["me"] = self;
    expect(refusal(self)).toContain("a cycle back to $ at $.me");

    const parent = { children: [] as unknown[], text: "x".repeat(100_000) };
    parent.children.push({ leaf: true }, { parent });
    expect(refusal({ tree: parent })).toContain(
      "a cycle back to $.tree at $.tree.children[1].parent",
    );

    const big = { text: "x".repeat(100_000), again: {} };
    big.again = big;
    expect(refusal(big)).toContain("a cycle back to $ at $.again");

    const map = new Map<string, unknown>();
    map.set("map", [map]);
    expect(refusal(map)).toContain("a cycle back to $ at $[value of entry 0][0]");

    const error = new Error("e");
    error.cause = error;
    expect(refusal(error)).toContain("a cycle back to $ at $.cause");
  });

  it("may be a value that throws when it is read", () => {
    const getter = {
      ok: 1,
      get broken(): never {
        throw new TypeError("nope\n");
      },
    };
    expect(refusal([getter])).toBe(
      'step "charge": cannot store a value that cannot be read ("nope\\u{a}") at $[0].broken',
    );
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    expect(refusal({ proxy })).toMatch(/a value that cannot be read \(".*proxy.*"\) at \$\.proxy/);
    const throwsUndefined = {
      get broken(): never {
        throw undefined;
      },
    };
    expect(refusal(throwsUndefined)).toContain('cannot be read ("") at $.broken');
  });

  it("may be an impostor of a built-in class", () => {
    class Fake {
      get [Symbol.toStringTag](): string {
        return "Map";
      }
    }
    expect(refusal({ fake: new Fake() })).toContain("at $.fake");
  });

  it("may be nested beyond 1000 levels, without a stack overflow", () => {
    for (const leaf of [1, undefined, new Date(0), new Uint8Array(1), 1n]) {
      const text = encode(nested(1_000, leaf));
      expect(encode(decode(text))).toBe(text);
    }
    for (const value of [nested(1_001, 1), nested(1_000, {}), nested(100_000, 1)]) {
      const message = refusal(value);
      expect(message).toContain("more than 1000 levels of nesting at $");
      expect(message.length).toBeLessThan(200);
    }
  });

  it("is named by the ends of its path if that is long", () => {
    const value = [...Array(20).keys()].reduceRight<unknown>(
      (inner, i) => ({ [`k${i}`]: inner }),
      () => 1,
    );
    expect(refusal(value)).toContain("at $.k0.k1.k2.k3.k4.k5….k14.k15.k16.k17.k18.k19");
    expect(refusal({ ["x".repeat(10_000)]: () => 1 }).length).toBeLessThan(200);
  });
});

describe("size", () => {
  it("is measured in UTF-8 bytes of the encoded text", () => {
    expect(encode("aaa", 5)).toBe('"aaa"');
    expect(encode("€", 5)).toBe('"€"');
    expect(encode("😀", 6)).toBe('"😀"');
    for (const [value, maxBytes, size] of [
      ["aaaa", 5, 6],
      ["€€", 7, 8],
      ["€€€€", 13, 14],
      ["😀", 5, 6],
      ["é", 3, 4],
      ["\u0000", 7, 8],
      ["\ud800", 7, 8],
      [new Uint8Array(3), 30, 37],
    ] as const) {
      const attempt = (): string => encode(value, maxBytes);
      expect(attempt).toThrow(PayloadTooLargeError);
      expect(attempt).toThrow(
        `step "charge": the encoded value has ${size} bytes, the limit is ${maxBytes} bytes`,
      );
    }
  });

  it("agrees with Buffer.byteLength", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        const bytes = Buffer.byteLength(JSON.stringify(text));
        expect(encode(text, bytes)).toBe(JSON.stringify(text));
        expect(() => encode(text, bytes - 1)).toThrow(PayloadTooLargeError);
      }),
    );
  });

  it("may be exactly a mebibyte", () => {
    expect(encode("x".repeat(mebibyte - 2))).toHaveLength(mebibyte);
    expect(() => encode("x".repeat(mebibyte - 1))).toThrow(`has ${mebibyte + 1} bytes`);
  });

  it("is not measured further once the value can never fit", () => {
    let bomb: unknown = [];
    for (let i = 0; i < 60; i++) bomb = [bomb, bomb]; // 2^60 values, each of them storable
    const tooMuch = "has more than 4194304 bytes, the limit is 1048576 bytes";
    expect(() => encode(bomb)).toThrow(tooMuch);
    expect(() => encode(Array(4_000_000_000))).toThrow(tooMuch);
    expect(() => encode(new Uint8Array(100_000_000))).toThrow(tooMuch);
  });
});

describe("decode", () => {
  it.each([
    "",
    "banana",
    "undefined",
    "{",
    '{"$pawl":"Nothing"}',
    '{"$pawl":"toString","value":"aGk="}',
    '{"$pawl":null}',
    '{"$pawl":{"$pawl":"undefined"}}',
    '{"$pawl":"number","value":"1"}',
    '{"$pawl":"number"}',
    '{"$pawl":"bigint","value":"1.5"}',
    '{"$pawl":"bigint","value":1}',
    '{"$pawl":"bigint","value":""}',
    '{"$pawl":"Date","value":"banana"}',
    '{"$pawl":"Date","value":0}',
    '{"$pawl":"Map","value":{}}',
    '{"$pawl":"Map","value":[1]}',
    '{"$pawl":"Map","value":[[1]]}',
    '{"$pawl":"Set","value":"ab"}',
    '{"$pawl":"Uint8Array","value":"%%%"}',
    '{"$pawl":"Uint8Array","value":[1]}',
    '{"$pawl":"Float64Array","value":"aGk="}',
    '{"$pawl":"Error"}',
    '{"$pawl":"Error","name":"Unheard","message":"e"}',
    '{"$pawl":"Error","name":"Error","class":"Object","message":"e"}',
    '{"$pawl":"Error","name":"Error","message":"e","code":{}}',
    '{"$pawl":"Error","name":"Error","message":"e","errors":1}',
    `${'{"$pawl":"Set","value":['.repeat(5_000)}${"]}".repeat(5_000)}`,
  ])("refuses %s with one kind of error", (text) => {
    expect(() => decode(text)).toThrow(SerializationError);
  });

  it("reads plain JSON of any depth, because that needs no walk", () => {
    expect(() => decode("[".repeat(100_000) + "]".repeat(100_000))).not.toThrow();
  });
});

describe("round trips", () => {
  const key = fc.oneof(
    fc.string(),
    fc.constantFrom("$pawl", "$$pawl", "__proto__", "constructor", "toString", "value", "0"),
  );
  const leaf = fc.oneof(
    fc.string({ unit: "binary" }),
    fc.double(),
    fc.integer(),
    fc.boolean(),
    fc.bigInt(),
    fc.constantFrom(null, undefined, -0, "undefined", "Date"),
    fc.date({ noInvalidDate: true }),
    fc.uint8Array(),
    fc.float64Array(),
    fc
      .tuple(fc.constantFrom(Error, TypeError, NonRetryableError), fc.string())
      .map(([Class, message]) => new Class(message)),
  );
  const { value: anyValue } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      leaf,
      fc.array(tie("value"), { maxLength: 4 }),
      fc
        .array(fc.tuple(key, tie("value")), { maxLength: 4 })
        .map((entries): unknown => Object.fromEntries(entries)),
      fc.array(fc.tuple(tie("value"), tie("value")), { maxLength: 3 }).map((e) => new Map(e)),
      fc.array(tie("value"), { maxLength: 3 }).map((items) => new Set(items)),
    ),
  }));

  it("return what was put in", () => {
    fc.assert(
      fc.property(anyValue, (value) => {
        const text = encode(value);
        const back = decode(text);
        expect(isDeepStrictEqual(back, value)).toBe(true);
        expect(encode(back)).toBe(text);
        expect(text).toMatch(/^\P{Cs}*$/u);
        expect(text.includes("\u0000")).toBe(false);
      }),
      { numRuns: 1_000 },
    );
  });

  it("answer any value with a text or one of two errors", () => {
    fc.assert(
      fc.property(
        fc.anything({
          withMap: true,
          withSet: true,
          withSparseArray: true,
          withObjectString: true,
        }),
        (value) => {
          try {
            expect(encode(decode(encode(value)))).toBe(encode(value));
          } catch (error) {
            expect([SerializationError, PayloadTooLargeError]).toContain(
              (error as Error).constructor,
            );
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
