// Randomness from the operating system.
import { randomFillSync } from "node:crypto";
import type { Random } from "../random.ts";

// One call to the generator serves many ids: a page costs about as much as sixteen bytes.
const pool = new Uint8Array(4096);
let used = pool.length;

export const nodeRandom: Random = { bytes, fraction };

function bytes(length: number): Uint8Array {
  if (length > pool.length) return randomFillSync(new Uint8Array(length));
  if (used + length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  // A copy: the result must not change when the pool is refilled.
  const taken = pool.slice(used, used + length);
  // Erase used bytes, so that no memory dump contains them: some ids are secrets.
  pool.fill(0, used, used + length);
  used += length;
  return taken;
}

function fraction(): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes(6);
  return (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) / 2 ** 48;
}
