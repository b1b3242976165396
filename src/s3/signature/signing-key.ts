// The signing key of a day, a region and a secret, and signatures made with it.
import { createHmac, timingSafeEqual } from "node:crypto";

/** The scope of a signature: day, region and service. */
export interface CredentialScope {
  /** The day, as eight digits. */
  readonly day: string;
  readonly region: string;
}

export function scopeText({ day, region }: CredentialScope): string {
  return `${day}/${region}/s3/aws4_request`;
}

/**
 * The maximum number of cached keys, enough for a handful of days and secrets. Without a limit,
 * clients could grow the cache with invented days.
 */
const keysMax = 256;
const keys = new Map<string, Buffer>();

export function signingKey(secret: string, { day, region }: CredentialScope): Buffer {
  const name = `${day}/${region}/${secret}`;
  const known = keys.get(name);
  if (known !== undefined) return known;
  const steps = [day, region, "s3", "aws4_request"];
  const key = steps.reduce<string | Buffer>((above, step) => hmac(above, step), `AWS4${secret}`) as Buffer;
  if (keys.size >= keysMax) keys.clear();
  keys.set(name, key);
  return key;
}

export function sign(key: Buffer, text: string): string {
  return hmac(key, text).toString("hex");
}

/** Compares in constant time, so that the duration does not reveal how much matches. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
