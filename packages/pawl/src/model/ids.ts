import type { Runtime } from "./seams.js";

/** The digits are in ASCII order, so that ids sort as text in the order in which they were made. */
const DIGITS = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
const TIME_DIGITS = 8;
const RANDOM_DIGITS = 14;

/**
 * Returns a maker of internal ids. An id has 22 characters: 48 bits of the process's time and 84 random bits. The time
 * only keeps ids made at about the same time together in an index; nothing is decided by it. Ids of one maker strictly
 * increase, even within a millisecond and when the clock steps back.
 */
export function idMaker(runtime: Pick<Runtime, "clock" | "random">): () => string {
  let time = 0;
  let digits: number[] = [];
  return () => {
    const now = runtime.clock.now();
    if (now > time) {
      time = now;
      digits = randomDigits(runtime);
    } else {
      increment(digits);
    }
    return encodeTime(time) + digits.map((digit) => DIGITS[digit]).join("");
  };
}

function randomDigits(runtime: Pick<Runtime, "random">): number[] {
  const bytes = new Uint8Array(RANDOM_DIGITS);
  runtime.random.bytes(bytes);
  // The first digit stays in the lower half, which leaves room for 2^83 increments.
  return Array.from(bytes, (byte, i) => byte & (i === 0 ? 31 : 63));
}

function increment(digits: number[]): void {
  for (let i = digits.length - 1; i >= 0; i--) {
    const digit = digits[i] ?? 0;
    if (digit < 63) {
      digits[i] = digit + 1;
      return;
    }
    digits[i] = 0;
  }
}

function encodeTime(ms: number): string {
  let encoded = "";
  let rest = ms;
  for (let i = 0; i < TIME_DIGITS; i++) {
    encoded = DIGITS[rest % 64] + encoded;
    rest = Math.floor(rest / 64);
  }
  return encoded;
}
