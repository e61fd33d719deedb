import {
  chai,
  getState,
  JestAsymmetricMatchers,
  JestChaiExpect,
  JestExtend,
  setState,
} from "@vitest/expect";

// Test suites written for vitest find this under its name in workerd: its own matchers, and enough of its
// functions to collect tests there and run them one by one.

type Body = (...args: unknown[]) => unknown;
type Rows = readonly unknown[];

type Tests = Map<string, () => unknown>;

let tests: Tests = new Map();
const path: string[] = [];
let finishers: (() => unknown)[] = [];

for (const plugin of [JestExtend, JestChaiExpect, JestAsymmetricMatchers]) chai.use(plugin);

export const expect = Object.assign(
  (value: unknown, message?: string) => chai.expect(value, message),
  (chai as unknown as { readonly expect: object }).expect,
);
setState({ ...getState(expect as never) }, expect as never);

export const describe = eachable((name, define) => {
  path.push(name);
  define();
  path.pop();
});

export const test = eachable((name, body) => {
  const full = [...path, name].join(" > ");
  let unique = full;
  for (let n = 2; tests.has(unique); n++) unique = `${full} (${n})`;
  tests.set(unique, body);
});

/** Does nothing, because objects end with workerd. */
export function afterAll(): void {}

export function onTestFinished(finish: () => unknown): void {
  finishers.push(finish);
}

export const vi = {
  resetModules(): never {
    throw new Error("a bundle has one copy of each module");
  },
};

/** Returns the tests that `define` defines, by name. */
export function collected(define: () => void): Tests {
  tests = new Map();
  define();
  return tests;
}

export async function run(body: () => unknown): Promise<void> {
  finishers = [];
  try {
    await body();
  } finally {
    for (const finish of finishers.toReversed()) await finish();
  }
}

function eachable(define: (name: string, body: Body) => void) {
  const each =
    (rows: Rows) =>
    (title: string, body: Body): void => {
      for (const row of rows) {
        const args = Array.isArray(row) ? (row as unknown[]) : [row];
        define(formatted(title, args), () => body(...args));
      }
    };
  return Object.assign(define, { each });
}

function formatted(title: string, args: readonly unknown[]): string {
  let used = 0;
  return title
    .replaceAll(/%[sij]/g, (kind) => {
      const value = args[used++];
      return kind === "%j" ? JSON.stringify(value) : String(value);
    })
    .replaceAll(/\$(\w+)/g, (_, key: string) => String((args[0] as Record<string, unknown>)[key]));
}
