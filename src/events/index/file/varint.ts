// Whole numbers below 2^32 in as few bytes as they need: seven bits each, lowest first, the highest bit set in all but the last.

export function varintBytesOf(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x20_0000 ? 3 : value < 0x1000_0000 ? 4 : 5;
}

export function putVarint(bytes: Uint8Array, at: number, value: number): void {
  let rest = value;
  let index = at;
  for (; rest >= 0x80; rest >>>= 7) bytes[index++] = (rest & 0x7f) | 0x80;
  bytes[index] = rest;
}

export function varintAt(bytes: Uint8Array, at: number): number {
  let value = 0;
  for (let index = at, shift = 0; ; index++, shift += 7) {
    const byte = bytes[index] as number;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value >>> 0;
  }
}
