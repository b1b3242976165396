// Ids that are never reused: they sort by creation time and stay distinct on disks that ignore
// case.

// Crockford's digits in lower case: no i, l, o, u, so that a person can read one aloud; ascending,
// so that text order is number order.
const digits = "0123456789abcdefghjkmnpqrstvwxyz";
const timeDigits = 10;
const randomDigits = 26;
const idPattern = new RegExp(`^[${digits}]{${timeDigits + randomDigits}}$`);

/**
 * Ten digits of milliseconds, then 128 random bits. The time is only for people and for sorting.
 * The random part alone makes the id unique, so clocks may disagree.
 */
export function makeId(wallMs: number, random: Uint8Array): string {
  if (random.length !== 16) throw new RangeError(`An id takes 16 random bytes, not ${random.length}.`);
  let time = "";
  let rest = Math.max(0, Math.floor(wallMs));
  for (let i = 0; i < timeDigits; i++) {
    time = digits.charAt(rest % 32) + time;
    rest = Math.floor(rest / 32);
  }
  return time + randomName(random);
}

/** A name of 128 random bits only, for things that are never sorted. */
export function randomName(random: Uint8Array): string {
  let name = "";
  let bits = 0;
  let value = 0;
  for (const byte of random) {
    value = (value << 8) | byte;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      name += digits.charAt((value >> bits) & 31);
    }
    value &= (1 << bits) - 1;
  }
  return bits > 0 ? name + digits.charAt((value << (5 - bits)) & 31) : name;
}

export function isId(text: string): boolean {
  return idPattern.test(text);
}

/** Returns when an id was made, by the clock of the machine that made it. */
export function idTimeMs(id: string): number {
  let ms = 0;
  for (const digit of id.slice(0, timeDigits)) ms = ms * 32 + digits.indexOf(digit);
  return ms;
}
