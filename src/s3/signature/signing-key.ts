// The key of a day, a region and a secret, and what is signed with it.
import { createHmac, timingSafeEqual } from "node:crypto";

/** What a signature is valid for: the day, the region and the service. */
export interface Scope {
  /** Eight digits. */
  readonly day: string;
  readonly region: string;
}

export function scopeText({ day, region }: Scope): string {
  return `${day}/${region}/s3/aws4_request`;
}

/** A handful of days and secrets at a time; a client cannot make it grow with names of its own. */
const keysMax = 256;
const keys = new Map<string, Buffer>();

export function signingKey(secret: string, { day, region }: Scope): Buffer {
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

/** In a time that does not tell how much of it is right. */
export function isSame(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)];
  return a.length === b.length && timingSafeEqual(a, b);
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}
