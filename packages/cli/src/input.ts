import { readFile } from "node:fs/promises";
import path from "node:path";
import { jsonPlusCodec } from "pawl";
import { Failure } from "./failure.js";
import { visible, cut } from "./terminal/text.js";

/** More than any payload may have, and less than would fill the memory. */
const MAX_BYTES = 64 * 1_048_576;

export type InputSource = { readonly cwd: string; readonly stdin: NodeJS.ReadableStream };

/**
 * Reads a value that is given as JSON text, as `@file`, or as `-` for standard input. Values that JSON cannot hold are
 * written as in the HTTP API: `{"$pawl":"Date","value":"…"}`.
 */
export async function readValue(
  option: string,
  given: string | undefined,
  source: InputSource,
): Promise<unknown> {
  if (given === undefined) return undefined;
  const { text, from } = await readText(option, given, source);
  parseJson(option, text, from, given);
  try {
    return jsonPlusCodec.decode(text);
  } catch (error) {
    throw invalid(`${option}${from} ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** Reads a file of exported histories. */
export async function readHistoryFile(file: string, source: InputSource): Promise<unknown> {
  const given = file === "-" ? "-" : `@${file}`;
  try {
    const { text, from } = await readText("--file", given, source);
    return parseJson("--file", text, from, given);
  } catch (error) {
    throw error instanceof Failure ? invalid(error.message, HOW_TO_SAVE) : error;
  }
}

const HOW_TO_SAVE = "make such a file: pawl replay <workflow> <id> --save history.json";

type Read = { readonly text: string; readonly from: string };

async function readText(option: string, given: string, source: InputSource): Promise<Read> {
  if (given === "-") {
    return {
      text: decoded(option, await readAll(option, source.stdin)),
      from: " from standard input",
    };
  }
  if (!given.startsWith("@")) return { text: given, from: "" };
  const file = path.resolve(source.cwd, given.slice(1));
  const from = ` from ${path.relative(source.cwd, file) || file}`;
  let bytes: Buffer;
  try {
    bytes = await readFile(file);
  } catch (error) {
    throw invalid(`${option} cannot be read${from}: ${reasonOf(error)}`);
  }
  checkSize(option, bytes.length);
  return { text: decoded(option + from, bytes), from };
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: "there is no such file",
    EACCES: "this user may not read it",
    EISDIR: "it is a folder",
  };
  return reasons[code ?? ""] ?? message;
}

async function readAll(option: string, stdin: NodeJS.ReadableStream): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    checkSize(option, size);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function checkSize(option: string, bytes: number): void {
  if (bytes > MAX_BYTES) throw invalid(`${option} has more than ${MAX_BYTES / 1_048_576} MiB`);
}

function decoded(what: string, bytes: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalid(`${what} is not valid UTF-8`);
  }
}

function parseJson(option: string, text: string, from: string, given: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalid(
      text.trim() === ""
        ? `${option}${from} is empty: JSON was expected`
        : `${option}${from} is not JSON: ${cut(visible(reason), 200)}`,
      looksLikePath(given) ? `to read a file, put an @ before it: ${option} @${given}` : undefined,
    );
  }
}

function looksLikePath(given: string): boolean {
  return /^[^@{["\s]\S*\.json$/.test(given);
}

function invalid(message: string, hint?: string): Failure {
  return new Failure("usage", "INVALID_INPUT", message, {
    hint:
      hint ??
      `text: '{"amount":42}'   a file: @params.json   standard input: -   (in a shell, quote the text)`,
  });
}
