/** Returns how many bytes a text has in UTF-8. A lone surrogate counts 3, as its replacement character does. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (isPairAt(text, i, unit)) {
      bytes += 2; // 4 bytes for 2 units
      i++;
    } else bytes += 2;
  }
  return bytes;
}

function isPairAt(text: string, i: number, unit: number): boolean {
  if (unit < 0xd800 || unit > 0xdbff) return false;
  const next = text.charCodeAt(i + 1);
  return next >= 0xdc00 && next <= 0xdfff;
}

/** Whether a text has more than `maxBytes` bytes in UTF-8. It counts them only if the text's length does not decide. */
export function isLongerInUtf8(text: string, maxBytes: number): boolean {
  if (text.length > maxBytes) return true;
  if (text.length * 3 <= maxBytes) return false; // a UTF-16 unit is at most 3 bytes
  return utf8Length(text) > maxBytes;
}
