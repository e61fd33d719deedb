/**
 * Encoded payloads that a careless store changes: they are JSON text, so NUL and lone surrogates come escaped, but
 * a store that parses them (jsonb), interpolates them or stores them in a 3-byte charset does not give them back.
 */
export const hostileTexts: readonly string[] = [
  '"😀 🏳️‍🌈 e\u0301 \u{10ffff} \u2028"',
  String.raw`"escaped NUL \u0000, lone surrogates \ud800 \udfff"`,
  String.raw`"quote \" apostrophe ' backslash \\ double \\\\ tab \t newline \n"`,
  '"$1 $2 ? ?? :now :rows.ord %s %% {} -- /* */ ;"',
  '{"b":1,  "a":2, "a":9007199254740993, "__proto__":{"x":1.0}}',
  " \n[ ] \n ",
  "null",
  '""',
];

/** 1 MiB of UTF-8 with all of the above in it. */
export const mebibyteText: string = (() => {
  const unit = `${hostileTexts.map((text) => JSON.stringify(text)).join(",")},`;
  const text = `[${unit.repeat(Math.floor((1_048_576 - 100) / utf8Bytes(unit)))}`;
  return `${text}"${"x".repeat(1_048_576 - utf8Bytes(text) - 3)}"]`;
})();

function utf8Bytes(text: string): number {
  let bytes = 0;
  for (const character of text) {
    const point = character.codePointAt(0) ?? 0;
    bytes += point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
  }
  return bytes;
}

/** Keys that compare equal under some collation, or come back changed, and must not. */
export const lookalikes: readonly string[] = [
  "order",
  "Order",
  "ORDER",
  "order ",
  " order",
  "ordér",
  "orde\u0301r",
  "ordеr", // a Cyrillic е
  "ord_r",
  "ord%",
  "\ufefforder",
];
