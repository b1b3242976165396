// A fast 53-bit hash of text, for remembering states. A collision would hide one state in about 10^10 of a
// million-state run.

const seeds = { high: 0xdeadbeef, low: 0x41c6ce57 };
const factors = { high: 2654435761, low: 1597334677 };

/** Two rounds of multiply-and-mix over 32-bit halves. */
export function hashOf(text: string): string {
  let high = seeds.high;
  let low = seeds.low;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    high = Math.imul(high ^ unit, factors.high);
    low = Math.imul(low ^ unit, factors.low);
  }
  return mixed(high, low);
}

export function hashOfBytes(bytes: Uint8Array): string {
  let high = seeds.high;
  let low = seeds.low;
  for (const byte of bytes) {
    high = Math.imul(high ^ byte, factors.high);
    low = Math.imul(low ^ byte, factors.low);
  }
  return mixed(high, low);
}

function mixed(highBefore: number, lowBefore: number): string {
  let high = highBefore;
  let low = lowBefore;
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909);
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909);
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36);
}
