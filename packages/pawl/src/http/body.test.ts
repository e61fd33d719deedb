import { expect, test } from "vitest";
import { defaultLimits } from "../model/limits.js";
import { webRuntime } from "../runtime.js";
import { parseBody, readBody } from "./body.js";

const { scheduler } = webRuntime;

function requestWith(body: ReadableStream<Uint8Array>) {
  return { method: "POST", url: "http://x/", headers: new Headers(), body };
}

test("a body that stops coming is given up after 30 seconds", async () => {
  let cancelled = false;
  const stalled = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new Uint8Array([0x7b])),
    cancel: () => void (cancelled = true),
  });
  const waits: number[] = [];
  const impatient = {
    ...scheduler,
    grace: (ms: number, callback: () => void) => {
      waits.push(ms);
      return scheduler.grace(1, callback);
    },
  };
  await expect(readBody(requestWith(stalled), defaultLimits, impatient)).rejects.toMatchObject({
    code: "INVALID_REQUEST",
    message: "the body did not come within 30000 ms",
  });
  expect([waits, cancelled]).toEqual([[30_000], true]);
});

test("a body that breaks off is refused", async () => {
  const broken = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new Error("ECONNRESET")),
  });
  await expect(readBody(requestWith(broken), defaultLimits, scheduler)).rejects.toMatchObject({
    code: "INVALID_REQUEST",
  });
});

test("text is decoded even if a chunk ends within a character", async () => {
  const bytes = new TextEncoder().encode('"é💥"');
  const split = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  expect(await readBody(requestWith(split), defaultLimits, scheduler)).toBe('"é💥"');
});

test("brackets, colons and quotes inside strings do not count towards the limits", () => {
  const text = JSON.stringify({ 'a"\\': `${"[".repeat(5_000)}\\"${":".repeat(200_000)}\\` });
  expect(parseBody(text, defaultLimits)).toEqual(JSON.parse(text));
});
