// UUIDs of version 7: they sort by creation time, and other systems expect them as event ids.

/** `random`: 16 bytes; the time replaces the first six. */
export function makeUuid(wallMs: number, random: Uint8Array): string {
  if (random.length !== 16) throw new RangeError(`A UUID takes 16 random bytes, not ${random.length}.`);
  const bytes = Buffer.from(random);
  bytes.writeUIntBE(Math.max(0, Math.floor(wallMs)), 0, 6);
  bytes[6] = 0x70 | (random[6]! & 0x0f);
  bytes[8] = 0x80 | (random[8]! & 0x3f);
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
