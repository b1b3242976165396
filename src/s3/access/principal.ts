// Principals and their rights: those of a key pair, and those of requests without one.
import { S3Error } from "../http/s3-error.ts";
import { operator } from "./account.ts";

/** A key pair and its rights. */
export interface S3Credentials {
  /** The access key id. */
  accessKeyId: string;
  /** The secret access key. */
  secretAccessKey: string;
  /**
   * `owner` manages buckets; `read-write` reads and writes objects; `read-only` reads them. Default
   * `owner`.
   */
  rights?: "owner" | "read-write" | "read-only" | undefined;
  /** Limits the key pair to these buckets, or prefixes as "bucket/prefix". Default: all. */
  only?: readonly string[] | undefined;
  /**
   * The account of the key pair. It owns the buckets that its key pairs create, and has what other
   * accounts grant it. Default: the operator, who owns all buckets.
   */
  account?: string | undefined;
}

export type Principal = { readonly kind: "key"; readonly credentials: S3Credentials } | { readonly kind: "anonymous" };

/** The right that an operation needs. "manage" changes buckets and their settings. */
export type AccessLevel = "read" | "write" | "manage";

const allowed: Readonly<Record<NonNullable<S3Credentials["rights"]>, readonly AccessLevel[]>> = {
  owner: ["read", "write", "manage"],
  "read-write": ["read", "write"],
  "read-only": ["read"],
};

/** Undefined for the operator, and for an unsigned request. */
export function accountOf(principal: Principal): string | undefined {
  return principal.kind === "key" ? principal.credentials.account : undefined;
}

/**
 * Returns the name of whoever began an upload, as listings show it. The name for an anonymous
 * request is not a valid account name.
 */
export function initiatorOf(principal: Principal): string {
  return principal.kind === "key" ? (principal.credentials.account ?? operator) : "(anonymous)";
}

export function isOwner(principal: Principal): boolean {
  return principal.kind === "key" && (principal.credentials.rights ?? "owner") === "owner";
}

/**
 * Throws AccessDenied unless the key pair has the right. `prefix` is a key, or the prefix of the
 * listed keys. Grants of the bucket are checked elsewhere.
 */
export function mustHaveRight(
  { rights = "owner", ...credentials }: S3Credentials,
  need: AccessLevel,
  { bucket, prefix = "" }: { readonly bucket?: string | undefined; readonly prefix?: string | undefined },
): void {
  if (!allowed[rights].includes(need) || !covers(credentials, bucket, prefix)) throw new S3Error("AccessDenied");
}

/**
 * True if the key pair may use this bucket and prefix. A key pair that is confined to some buckets
 * may send no request without a bucket, except to list them: that list is filtered.
 */
export function covers({ only }: Pick<S3Credentials, "only">, bucket: string | undefined, prefix: string): boolean {
  if (only === undefined) return true;
  if (bucket === undefined) return false;
  return only.some((place) => {
    const slash = place.indexOf("/");
    const [name, start] = slash < 0 ? [place, ""] : [place.slice(0, slash), place.slice(slash + 1)];
    return name === bucket && prefix.startsWith(start);
  });
}
