// The members that Pawl uses of the web's own classes. Every modern JavaScript runtime has these classes, but the
// domain is compiled with no runtime's types.

export interface WebHeaders {
  get(name: string): string | null;
}

export interface WebRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: WebHeaders;
  readonly body: object | null;
  readonly bodyUsed?: boolean;
  readonly signal?: object | null;
}

export interface WebResponse {
  readonly status: number;
  readonly ok: boolean;
  readonly headers: WebHeaders;
  readonly body: object | null;
  text(): Promise<string>;
}

/** The `Response` of whichever runtime's types the user's program has. */
export type RuntimeResponse = typeof globalThis extends { Response: { prototype: infer R } }
  ? R
  : WebResponse;

/** The `Headers` of whichever runtime's types the user's program has. */
export type RuntimeHeaders = typeof globalThis extends { Headers: { prototype: infer H } }
  ? H
  : WebHeaders;

export interface ByteReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
  cancel(reason?: unknown): Promise<void>;
}

export interface ByteStream {
  getReader(): ByteReader;
}

interface ByteSource {
  enqueue(chunk: Uint8Array): void;
  close(): void;
  readonly desiredSize: number | null;
}

type StreamUnderlying = {
  start?(controller: ByteSource): void;
  pull?(controller: ByteSource): void | Promise<void>;
  cancel?(reason?: unknown): void;
};

export interface WebUrl {
  readonly username: string;
  readonly password: string;
  readonly pathname: string;
  readonly searchParams: { getAll(name: string): string[]; keys(): Iterable<string> };
}

declare const Response: new (
  body: string | ByteStream | null,
  init: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
) => WebResponse;
declare const ReadableStream: new (
  source: StreamUnderlying,
  strategy?: { readonly highWaterMark: number },
) => ByteStream;
declare const TextDecoder: new (
  label: "utf-8",
  options?: { readonly fatal?: boolean },
) => { decode(bytes?: Uint8Array, options?: { readonly stream?: boolean }): string };
declare const TextEncoder: new () => { encode(text: string): Uint8Array };
declare const URL: new (url: string) => WebUrl;

export function newResponse(
  body: string | ByteStream | null,
  status: number,
  headers: Readonly<Record<string, string>>,
): WebResponse {
  return new Response(body, { status, headers });
}

/** Whether this is a `Response`, also one of another realm or of a library that brings its own class. */
export function isResponse(value: unknown): value is WebResponse {
  if (typeof value !== "object" || value === null) return false;
  return value instanceof Response || Object.prototype.toString.call(value) === "[object Response]";
}

/** Returns a stream that pulls from its source only when it is read. */
export function newByteStream(source: StreamUnderlying): ByteStream {
  return new ReadableStream(source, { highWaterMark: 0 });
}

/** Returns a decoder that throws on bytes that are not UTF-8. */
export function strictUtf8(): InstanceType<typeof TextDecoder> {
  return new TextDecoder("utf-8", { fatal: true });
}

/** Returns a decoder that replaces bytes that are not UTF-8. */
export function lenientUtf8(): InstanceType<typeof TextDecoder> {
  return new TextDecoder("utf-8");
}

export function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function parseUrl(url: string): WebUrl {
  return new URL(url);
}
