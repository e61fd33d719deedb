/** The codes with which the process ends. */
export const exitCode = {
  ok: 0,
  /** The command was understood, and was refused or failed. */
  failed: 1,
  /** The command line, what it reads, or the config is not right. */
  usage: 2,
  /** There is no such workflow or instance. */
  notFound: 3,
  /** The database or the API is away: try again. */
  unavailable: 4,
} as const;

type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** An error for people: a message, and what to try next. */
export class Failure extends Error {
  readonly code: string;
  readonly exit: ExitCode;
  readonly hint: string | undefined;

  constructor(
    exit: keyof typeof exitCode,
    code: string,
    message: string,
    options: { readonly hint?: string | undefined; readonly cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? {} : { cause: options.cause });
    this.exit = exitCode[exit];
    this.code = code;
    this.hint = options.hint;
  }
}

const notFound = new Set(["WORKFLOW_NOT_FOUND", "INSTANCE_NOT_FOUND", "NOT_FOUND"]);

const hints: Readonly<Record<string, string>> = {
  INSTANCE_NOT_FOUND: "see what there is: pawl list <workflow>",
  INSTANCE_ID_ALREADY_EXISTS: "choose another --id, or leave it out and one is made",
  INSTANCE_TERMINAL: "to run it again from its start: pawl restart <workflow> <id>",
  UNAUTHORIZED: "give a token: --token, or the variable PAWL_TOKEN",
  TICK_DISABLED: "the server must say tick: { enabled: true } in createWorkflows",
  NOT_FOUND: "is --url the address of a Pawl API, such as http://127.0.0.1:3000/api?",
};

const OTHER_TOKEN =
  "the API does not take the token of --token or PAWL_TOKEN: is it the right one?";

const NO_API = "does a Pawl API run there? pawl dev serves one, and says where";

/**
 * Makes a failure of any error. It goes by names and codes, not by classes, because the config may bring another copy
 * of pawl.
 */
export function failureOf(error: unknown, { hasToken = false, hasUrl = false } = {}): Failure {
  if (error instanceof Failure) return error;
  const { name, code, message } = described(error);
  if (name === "NotMigratedError") {
    return new Failure("failed", "NOT_MIGRATED", "the database has no Pawl tables, or old ones", {
      hint: "make them: pawl migrate (or look first: pawl migrate --dry-run)",
      cause: error,
    });
  }
  if (name === "IncompatibleDatabaseError") {
    return new Failure("failed", "INCOMPATIBLE_DATABASE", message, { cause: error });
  }
  if (name === "ValidationError") {
    return new Failure("usage", "INVALID_REQUEST", message, { cause: error });
  }
  if (code === "EADDRINUSE") {
    return new Failure("failed", "PORT_TAKEN", message, {
      hint: "take any free port: pawl dev --port 0",
      cause: error,
    });
  }
  if (name !== "WorkflowError" || code === undefined) {
    return new Failure("failed", "FAILED", message, { cause: error });
  }
  if (code === "STORE_UNAVAILABLE") {
    const hint = hasUrl ? NO_API : undefined;
    return new Failure("unavailable", code, withCause(message, error), { hint, cause: error });
  }
  const isUsage = code.startsWith("INVALID_") || code === "PAYLOAD_TOO_LARGE";
  const exit = notFound.has(code) ? "notFound" : isUsage ? "usage" : "failed";
  const hint = code === "UNAUTHORIZED" && hasToken ? OTHER_TOKEN : hints[code];
  return new Failure(exit, code, message, { hint, cause: error });
}

function described(error: unknown): { name: string; code: string | undefined; message: string } {
  if (!(error instanceof Error)) return { name: "", code: undefined, message: String(error) };
  const code: unknown = Reflect.get(error, "code");
  return {
    name: error.name,
    code: typeof code === "string" ? code : undefined,
    message: error.message === "" ? error.name : error.message,
  };
}

/** Adds the innermost cause, which says most: which address, which port. */
function withCause(message: string, error: unknown): string {
  let cause: unknown = error;
  while (cause instanceof Error && cause.cause !== undefined) cause = cause.cause;
  if (cause === error || !(cause instanceof Error)) return message;
  const errors = cause instanceof AggregateError ? cause.errors : [cause];
  const first: unknown = errors[0];
  return first instanceof Error && first.message !== "" ? `${message}: ${first.message}` : message;
}
