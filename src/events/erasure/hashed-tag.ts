// Tags by something personal: found by whoever knows the value and the secret, and read by nobody.
import { createHmac } from "node:crypto";

/**
 * `hashedTag(secret, "email", "ada@example.org")` gives "email:…": the same for the same value, so that a condition can ask for it. `secret` is yours, at least 16 bytes, kept outside the
 * log: whoever has it can try values. `forget` does not erase it; it is a pseudonym.
 */
export function hashedTag(secret: string | Uint8Array, name: string, value: string): string {
  if (Buffer.byteLength(secret) < 16) throw new RangeError("The secret of hashed tags has at least 16 bytes.");
  const hash = createHmac("sha256", secret)
    .update(JSON.stringify([name, value]))
    .digest();
  return `${name}:${hash.subarray(0, 16).toString("base64url")}`;
}
