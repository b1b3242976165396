// Who may do what: the rights of a key pair, and of requests without one.
import { S3Error } from "../http/s3-error.ts";

export interface S3Credentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** Default "owner". */
  rights?: "owner" | "read-write" | "read-only" | undefined;
  /** Only these buckets, or prefixes as "bucket/prefix". Default: all. */
  only?: readonly string[] | undefined;
}

export type Principal = { readonly kind: "key"; readonly credentials: S3Credentials } | { readonly kind: "anonymous" };

/** What an operation needs: "manage" changes buckets and their settings. */
export type Need = "read" | "write" | "manage";

const allowed: Readonly<Record<NonNullable<S3Credentials["rights"]>, readonly Need[]>> = {
  owner: ["read", "write", "manage"],
  "read-write": ["read", "write"],
  "read-only": ["read"],
};

export function isOwner(principal: Principal): boolean {
  return principal.kind === "key" && (principal.credentials.rights ?? "owner") === "owner";
}

/**
 * AccessDenied. `prefix` is a key, or the beginning of the keys that are listed. Anonymous requests
 * are decided by `isPublic`, which is only asked for them.
 */
export async function mustBeAllowed(
  principal: Principal,
  need: Need,
  { bucket, prefix = "" }: { readonly bucket?: string | undefined; readonly prefix?: string | undefined },
  isPublic: () => Promise<boolean>,
): Promise<void> {
  const isAllowed =
    principal.kind === "key"
      ? allowed[principal.credentials.rights ?? "owner"].includes(need) && covers(principal.credentials, bucket, prefix)
      : await isPublic();
  if (!isAllowed) throw new S3Error("AccessDenied");
}

/** Without a bucket: only for key pairs that are not confined. Listing buckets shows what is allowed. */
export function covers({ only }: S3Credentials, bucket: string | undefined, prefix: string): boolean {
  if (only === undefined) return true;
  if (bucket === undefined) return false;
  return only.some((place) => {
    const slash = place.indexOf("/");
    const [name, start] = slash < 0 ? [place, ""] : [place.slice(0, slash), place.slice(slash + 1)];
    return name === bucket && prefix.startsWith(start);
  });
}
