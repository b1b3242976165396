// Converts callers' texts to what PostgreSQL can store: no NUL, and no half of a surrogate pair.
import { sha256Of } from "../../format/checksum.ts";

/** Returns the text as JSON would escape it, without the quotes. */
export function escaped(text: string): string {
  return /[\p{Cc}\p{Surrogate}\\"]/u.test(text) ? JSON.stringify(text).slice(1, -1) : text;
}

export function unescaped(text: string): string {
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

/** Returns escaped texts as one value of type `text[]`, for lists within a list of parameters. */
export function arrayOf(texts: readonly string[]): string {
  return `{${texts.map((text) => `"${text.replaceAll(/[\\"]/g, "\\$&")}"`).join(",")}}`;
}

/**
 * Longer texts are hashed in keys: a row of an index has at most 2,704 bytes, and some have two
 * texts.
 */
const keyBytesMax = 800;

/** Returns a text, or its hash, for use in a key. No escaped text begins like a hash. */
export function keyOf(text: string): string {
  const key = escaped(text);
  if (Buffer.byteLength(key) <= keyBytesMax) return key;
  return `\\~${sha256Of(text)}`;
}
