// A request as operations see it: who asks, for which bucket and key, and what it carries.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Principal } from "../access/principal.ts";
import type { Verified } from "../signature/verify.ts";
import { S3Error } from "./s3-error.ts";
import type { RawTarget } from "./raw-target.ts";

export interface S3Request {
  readonly id: string;
  readonly method: string;
  readonly bucket: string | undefined;
  /** Never empty. */
  readonly key: string | undefined;
  readonly query: ReadonlyMap<string, string>;
  readonly headers: IncomingHttpHeaders;
  readonly principal: Principal;
  /** How the body is signed; undefined for a request that is not signed. */
  readonly verified: Verified | undefined;
  /** Of aws-chunked bodies, lower-case. */
  readonly trailerNames: readonly string[];
  readonly incoming: IncomingMessage;
  /** Tells a client that waits with its body to send it. */
  readonly continue: () => void;
  /** Aborts when the client goes away, or the gateway closes. */
  readonly signal: AbortSignal;
}

export interface Addressed {
  readonly bucket: string | undefined;
  readonly key: string | undefined;
}

/** Path style, or virtual-host style below `domain`. */
export function addressOf({ path }: RawTarget, host: string | undefined, domain: string | undefined): Addressed {
  const name = bucketOfHost(host ?? "", domain);
  const rest = path.slice(1);
  if (name !== undefined) return { bucket: name, key: rest === "" ? undefined : rest };
  const slash = rest.indexOf("/");
  const [bucket, key] = slash < 0 ? [rest, ""] : [rest.slice(0, slash), rest.slice(slash + 1)];
  if (bucket === "" && key !== "") throw new S3Error("InvalidBucketName", { details: { BucketName: "" } });
  return { bucket: bucket === "" ? undefined : bucket, key: key === "" ? undefined : key };
}

/** In virtual-host style the bucket is in the name of the host. */
export function bucketOfHost(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:[0-9]+$/, "").toLowerCase();
  return name.endsWith(`.${domain.toLowerCase()}`) ? name.slice(0, -domain.length - 1) : undefined;
}

/** A header that comes once, or not at all. */
export function findHeader({ headers }: Pick<S3Request, "headers">, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : value?.join(", ");
}

/** InvalidArgument unless it is a whole number from 0. */
export function findCount(request: S3Request, name: string, max: number = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = request.query.get(name);
  if (text === undefined || text === "") return undefined;
  if (/^[0-9]{1,10}$/.test(text) && Number(text) <= 2_147_483_647) return Math.min(Number(text), max);
  const message = `Provided ${name} not an integer or within integer range`;
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: name, ArgumentValue: text } });
}

export function getBucketName({ bucket }: S3Request): string {
  if (bucket === undefined) throw new S3Error("InvalidBucketName");
  return bucket;
}

export function getKey({ key }: S3Request): string {
  if (key === undefined) throw new S3Error("InvalidRequest", { message: "A key must be specified." });
  return checkKey(key);
}

/** KeyTooLongError. */
export function checkKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  if (bytes <= keyBytesMax) return key;
  throw new S3Error("KeyTooLongError", { details: { Size: String(bytes), MaxSizeAllowed: String(keyBytesMax) } });
}

const keyBytesMax = 1024;
