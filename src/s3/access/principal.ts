// Who may do what: the rights of a key pair, and of requests without one.
import { S3Error } from "../http/s3-error.ts";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** Default "owner". */
  rights?: "owner" | "read-write" | "read-only" | undefined;
  /** Only these buckets, or prefixes as "bucket/prefix". Default: all. */
  only?: readonly string[] | undefined;
  /**
   * Whose it is. It has the buckets that were made with key pairs of this account, and of others what
   * is granted to it. Default: the operator's, who has all buckets.
   */
  account?: string | undefined;
}

export type Principal = { readonly kind: "key"; readonly credentials: S3Credentials } | { readonly kind: "anonymous" };

/** What an operation needs: "manage" changes buckets and their settings. */
export type Need = "read" | "write" | "manage";

const allowed: Readonly<Record<NonNullable<S3Credentials["rights"]>, readonly Need[]>> = {
  owner: ["read", "write", "manage"],
  "read-write": ["read", "write"],
  "read-only": ["read"],
};

/** Undefined for the operator, and for a request that is not signed. */
export function accountOf(principal: Principal): string | undefined {
  return principal.kind === "key" ? principal.credentials.account : undefined;
}

export function isOwner(principal: Principal): boolean {
  return principal.kind === "key" && (principal.credentials.rights ?? "owner") === "owner";
}

/**
 * AccessDenied unless the key pair has the right. `prefix` is a key, or the beginning of the keys that
 * are listed. What the bucket grants is decided elsewhere.
 */
export function mustHaveRight(
  { rights = "owner", ...credentials }: S3Credentials,
  need: Need,
  { bucket, prefix = "" }: { readonly bucket?: string | undefined; readonly prefix?: string | undefined },
): void {
  if (!allowed[rights].includes(need) || !covers(credentials, bucket, prefix)) throw new S3Error("AccessDenied");
}

/** Without a bucket: only for key pairs that are not confined. Listing buckets shows what is allowed. */
export function covers({ only }: Pick<S3Credentials, "only">, bucket: string | undefined, prefix: string): boolean {
  if (only === undefined) return true;
  if (bucket === undefined) return false;
  return only.some((place) => {
    const slash = place.indexOf("/");
    const [name, start] = slash < 0 ? [place, ""] : [place.slice(0, slash), place.slice(slash + 1)];
    return name === bucket && prefix.startsWith(start);
  });
}
