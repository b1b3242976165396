// Encrypts one value with the key of its subject: AES-256-GCM, bound to one path in one event.
import { createCipheriv, createDecipheriv, createHmac } from "node:crypto";

/** A value as stored. Bytes are in base64. */
export interface SealedValue {
  readonly subject: string;
  /** Identifies the key. If a key was lost and replaced, values that it encrypted count as erased. */
  readonly key: string;
  readonly iv: string;
  readonly tag: string;
  readonly text: string;
}

/**
 * The address of a value: an event and a path in it. The encryption is bound to it, so a sealed value cannot be
 * copied to an address where a reader may see it.
 */
export interface ValueAddress {
  readonly type: string;
  readonly id: string;
  readonly path: readonly string[];
}

const keyBytesMin = 32;
const algorithm = "aes-256-gcm";

export function seal(key: Uint8Array, subject: string, address: ValueAddress, clear: string): SealedValue {
  const context = contextOf(subject, address);
  // Derived from address and content, not random: an event that is appended again under its id must equal the stored
  // one. Two different values never share an iv, because each address in an event is used once.
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

/** Throws for a value that was altered or sealed for another address. `key` must be the one that the value names. */
export function unseal(key: Uint8Array, { subject, iv, tag, text }: SealedValue, address: ValueAddress): string {
  const decipher = createDecipheriv(algorithm, derive(key, "encrypt"), Buffer.from(iv, "base64"), {
    // By default Node accepts a tag of 4 bytes, which can be guessed.
    authTagLength: 16,
  });
  decipher.setAAD(Buffer.from(contextOf(subject, address))).setAuthTag(Buffer.from(tag, "base64"));
  return Buffer.concat([decipher.update(text, "base64"), decipher.final()]).toString("utf8");
}

/** Distinguishes keys, and reveals nothing about them. */
export function keyIdOf(key: Uint8Array): string {
  return derive(key, "id").subarray(0, 8).toString("hex");
}

/**
 * Derives one key per use, so that one use reveals nothing about another. Throws a RangeError for a
 * key that is too short.
 */
function derive(key: Uint8Array, use: string): Buffer {
  if (!(key instanceof Uint8Array) || key.length < keyBytesMin)
    throw new RangeError(`The key of a subject must have at least ${keyBytesMin} bytes.`);
  return createHmac("sha256", key).update(`holdfast personal 1 ${use}`).digest();
}

function contextOf(subject: string, { type, id, path }: ValueAddress): string {
  return JSON.stringify([subject, type, id, ...path]);
}
