import { methodsOf, type Operation, type Route } from "./contract.js";

export type RouteMatch = {
  readonly operation: Operation;
  readonly route: Route;
  /** The decoded segments. One that cannot be decoded is left out. */
  readonly params: Readonly<Record<string, string>>;
};

/** The routes that the contract has at one path. */
export type PathRoutes = {
  /** The route of the request's method; null if there is none. */
  readonly match: RouteMatch | null;
  /** The path with the names of its parameters: that of the route or, if there is none, of another method. */
  readonly path: string;
  readonly allow: readonly string[];
};

type Template = Omit<RouteMatch, "params"> & { readonly segments: readonly string[] };

/** Finds routes under `basePath`. */
export class Router {
  readonly #base: readonly string[];
  readonly #templates: readonly Template[];

  constructor(contract: Readonly<Record<Operation, Route>>, basePath: string) {
    this.#base = segmentsOf(basePath);
    this.#templates = Object.entries(contract)
      .map(([operation, route]) => ({
        operation: operation as Operation,
        route,
        segments: segmentsOf(route.path),
      }))
      // A fixed word goes before a parameter, which could have that word as its value.
      .toSorted((a, b) => parametersIn(a) - parametersIn(b));
  }

  find(pathname: string, method: string): PathRoutes | null {
    const given = segmentsOf(pathname);
    if (!this.#base.every((segment, i) => given[i] === segment)) return null;
    const rest = given.slice(this.#base.length);
    const fitting = this.#templates.filter(({ segments }) => fits(segments, rest));
    const [first] = fitting;
    if (first === undefined) return null;
    const meant = fitting.find(({ route }) => methodsOf(route).includes(method));
    return {
      match: meant === undefined ? null : { ...meant, params: paramsIn(meant, rest) },
      path: (meant ?? first).route.path,
      allow: [...new Set(fitting.flatMap(({ route }) => methodsOf(route))), "OPTIONS"],
    };
  }
}

/**
 * Splits a path: "/a/b" → ["a", "b"]. "" and "/" have no segments; a slash too many makes an empty one, which fits
 * nothing.
 */
function segmentsOf(path: string): string[] {
  return path === "" || path === "/" ? [] : path.slice(1).split("/");
}

function parametersIn({ segments }: Template): number {
  return segments.filter(isParameter).length;
}

function isParameter(segment: string): boolean {
  return segment.startsWith(":");
}

function fits(segments: readonly string[], given: readonly string[]): boolean {
  return (
    segments.length === given.length &&
    segments.every((segment, i) => (isParameter(segment) ? given[i] !== "" : given[i] === segment))
  );
}

function paramsIn({ segments }: Template, given: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [i, segment] of segments.entries()) {
    const value = isParameter(segment) ? decoded(given[i] ?? "") : null;
    if (value !== null) params[segment.slice(1)] = value;
  }
  return params;
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
