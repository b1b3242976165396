// Encrypts one value with the key of its subject: AES-256-GCM, bound to one place in one event.
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

/** As it is stored. Bytes are in base64. */
export interface SealedValue {
  readonly subject: string;
  /**
   * Tells which key it was. A value whose key was lost and replaced by another one is as erased as
   * a forgotten one.
   */
  readonly key: string;
  readonly iv: string;
  readonly tag: string;
  readonly text: string;
}

/**
 * Where a value stands. The encryption is bound to it: a sealed value cannot be moved to a place
 * that a reader may see.
 */
export interface ValuePlace {
  readonly type: string;
  readonly id: string;
  readonly path: readonly string[];
}

const keyBytesMin = 32;
const algorithm = "aes-256-gcm";

export function seal(key: Uint8Array, subject: string, place: ValuePlace, clear: string): SealedValue {
  const context = contextOf(subject, place);
  // From the place and the content, and not random: an event that is appended again under its id
  // must be equal to the stored one. Two different values never share an iv, because no place of an
  // event is used twice.
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

/**
 * Throws for a value that was altered or made for another place. `key` must be the one that the
 * value names.
 */
export function unseal(key: Uint8Array, { subject, iv, tag, text }: SealedValue, place: ValuePlace): string {
  const decipher = createDecipheriv(algorithm, derive(key, "encrypt"), Buffer.from(iv, "base64"), {
    // By default Node accepts a tag of 4 bytes, which can be guessed.
    authTagLength: 16,
  });
  decipher.setAAD(Buffer.from(contextOf(subject, place))).setAuthTag(Buffer.from(tag, "base64"));
  return Buffer.concat([decipher.update(text, "base64"), decipher.final()]).toString("utf8");
}

/** Tells keys apart, and reveals nothing about them. */
export function keyIdOf(key: Uint8Array): string {
  return derive(key, "id").subarray(0, 8).toString("hex");
}

/**
 * One key for each use, so that one use reveals nothing about another. RangeError for a key that is
 * too short.
 */
function derive(key: Uint8Array, use: string): Buffer {
  if (!(key instanceof Uint8Array) || key.length < keyBytesMin)
    throw new RangeError(`The key of a subject has at least ${keyBytesMin} bytes.`);
  return createHmac("sha256", key).update(`holdfast personal 1 ${use}`).digest();
}

function contextOf(subject: string, { type, id, path }: ValuePlace): string {
  return JSON.stringify([subject, type, id, ...path]);
}
