// A request as operations see it: its sender, its bucket and key, and its content.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Principal } from "../access/principal.ts";
import type { VerifiedSignature } from "../signature/verify.ts";
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
  /** The signature that protects the body; undefined for an unsigned request. */
  readonly verified: VerifiedSignature | undefined;
  /** Trailers of an aws-chunked body, in lower case. */
  readonly trailerNames: readonly string[];
  readonly incoming: IncomingMessage;
  /** Tells a waiting client to send its body. */
  readonly continue: () => void;
  /** Aborts if the client disconnects or the gateway closes. */
  readonly signal: AbortSignal;
  /** Sets whether a new connection may replace this one until its body has arrived. */
  readonly giveWay: (mayGiveWay: boolean) => void;
}

export interface RequestAddress {
  readonly bucket: string | undefined;
  readonly key: string | undefined;
}

/** Finds bucket and key of a request, in path style or in virtual-host style below `domain`. */
export function addressOf({ path }: RawTarget, host: string | undefined, domain: string | undefined): RequestAddress {
  const name = bucketOfHost(host ?? "", domain);
  const rest = path.slice(1);
  if (name !== undefined) return { bucket: name, key: rest === "" ? undefined : rest };
  const slash = rest.indexOf("/");
  const [bucket, key] = slash < 0 ? [rest, ""] : [rest.slice(0, slash), rest.slice(slash + 1)];
  if (bucket === "" && key !== "") throw new S3Error("InvalidBucketName", { details: { BucketName: "" } });
  return { bucket: bucket === "" ? undefined : bucket, key: key === "" ? undefined : key };
}

/** In virtual-host style, the host name contains the bucket. */
export function bucketOfHost(host: string, domain: string | undefined): string | undefined {
  if (domain === undefined) return undefined;
  const name = host.replace(/:[0-9]+$/, "").toLowerCase();
  return name.endsWith(`.${domain.toLowerCase()}`) ? name.slice(0, -domain.length - 1) : undefined;
}

/** Returns a header. Repeated values are joined. */
export function findHeader({ headers }: Pick<S3Request, "headers">, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : value?.join(", ");
}

/** Returns a query parameter as a number. Throws InvalidArgument unless it is a whole number from 0. */
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

/** Throws KeyTooLongError. */
export function checkKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  if (bytes <= keyBytesMax) return key;
  throw new S3Error("KeyTooLongError", { details: { Size: String(bytes), MaxSizeAllowed: String(keyBytesMax) } });
}

const keyBytesMax = 1024;
