// Encryption of one value with the key of its subject: AES-256-GCM, bound to the one place in the one event that it was made for.
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

/** As it is stored. Bytes are in base64. */
export interface SealedValue {
  readonly subject: string;
  /** Which key it was: with another one of the same subject it cannot be read, and whose key is lost is as erased as whose key was forgotten. */
  readonly key: string;
  readonly iv: string;
  readonly tag: string;
  readonly text: string;
}

/** Where a value stands. Bound to it, so that nobody can move a value he cannot read to where it would be shown to him. */
export interface ValuePlace {
  readonly type: string;
  readonly id: string;
  readonly path: readonly string[];
}

const keyBytesMin = 32;
const algorithm = "aes-256-gcm";

export function seal(key: Uint8Array, subject: string, place: ValuePlace, clear: string): SealedValue {
  const context = contextOf(subject, place);
  // Not random, but of the place and the content: an event that is appended again under its id must be equal to what is stored. Two values never share it, because no place of
  // an event is used twice, and equal values in two places look different.
  const iv = createHmac("sha256", derive(key, "iv"))
    .update(context)
    .update("\0")
    .update(clear)
    .digest()
    .subarray(0, 12);
  const cipher = createCipheriv(algorithm, derive(key, "encrypt"), iv).setAAD(Buffer.from(context));
  const text = Buffer.concat([cipher.update(clear, "utf8"), cipher.final()]);
  return {
    subject,
    key: keyIdOf(key),
    iv: iv.toString("base64"),
    tag: cipher.getAuthTag().toString("base64"),
    text: text.toString("base64"),
  };
}

/** Throws when it was altered, or made for another place. The key must be that which it names. */
export function unseal(key: Uint8Array, { subject, iv, tag, text }: SealedValue, place: ValuePlace): string {
  const decipher = createDecipheriv(algorithm, derive(key, "encrypt"), Buffer.from(iv, "base64"), {
    // Node would take a tag of 4 bytes, too, which can be guessed.
    authTagLength: 16,
  });
  decipher.setAAD(Buffer.from(contextOf(subject, place))).setAuthTag(Buffer.from(tag, "base64"));
  return Buffer.concat([decipher.update(text, "base64"), decipher.final()]).toString("utf8");
}

/** Tells keys apart and says nothing about them. */
export function keyIdOf(key: Uint8Array): string {
  return derive(key, "id").subarray(0, 8).toString("hex");
}

/** One key for each use: what is learned of one says nothing of the other. RangeError for a key that is too short. */
function derive(key: Uint8Array, use: string): Buffer {
  if (!(key instanceof Uint8Array) || key.length < keyBytesMin)
    throw new RangeError(`The key of a subject has at least ${keyBytesMin} bytes.`);
  return createHmac("sha256", key).update(`holdfast personal 1 ${use}`).digest();
}

function contextOf(subject: string, { type, id, path }: ValuePlace): string {
  return JSON.stringify([subject, type, id, ...path]);
}
