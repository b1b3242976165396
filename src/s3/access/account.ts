// Accounts own buckets. A key pair without an account belongs to the operator, who owns all
// buckets.
import type { Bucket, BucketConfig } from "../../objects/index.ts";

/** The account of buckets that were created without one. */
export const operator = "holdfast";

/** The document of a bucket that names its owner. Without it, the operator owns the bucket. */
export const ownerDocument = "owner";

export async function ownerOf(bucket: Bucket): Promise<string> {
  const { documents } = bucket.knownConfig() ?? (await bucket.config());
  return documents[ownerDocument] ?? operator;
}

/** True if the bucket's owner owns every object in it, and ACLs are disabled. */
export function enforcesOwner({ ownershipControls }: BucketConfig["documents"]): boolean {
  return ownershipControls?.includes("BucketOwnerEnforced") === true;
}

/** An account in the XML of S3. */
export function accountAsXml(account: string): { readonly ID: string; readonly DisplayName: string } {
  return { ID: account, DisplayName: account };
}

/** The accounts that the grants of a bucket may name. */
export interface Accounts {
  /** The owner of the bucket. */
  readonly owner: string;
  readonly all: ReadonlySet<string>;
}
