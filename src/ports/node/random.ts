// Chance from the operating system.
import { randomFillSync } from "node:crypto";
import type { Random } from "../random.ts";

// One call to the generator serves many ids: a call costs about as much for a page as for sixteen
// bytes.
const pool = new Uint8Array(4096);
let used = pool.length;

export const nodeRandom: Random = { bytes, fraction };

function bytes(length: number): Uint8Array {
  if (length > pool.length) return randomFillSync(new Uint8Array(length));
  if (used + length > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  // A copy: what is handed out must not change when the pool is filled again.
  const taken = pool.slice(used, used + length);
  // Not to be found in a memory dump afterwards: ids are also what makes tokens hard to guess.
  pool.fill(0, used, used + length);
  used += length;
  return taken;
}

function fraction(): number {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = bytes(6);
  return (((((a * 256 + b) * 256 + c) * 256 + d) * 256 + e) * 256 + f) / 2 ** 48;
}
