// Accounts: whose a bucket is. A key pair without an account is the operator's, who has all buckets.
import type { Bucket } from "../../objects/index.ts";

/** The account of buckets that were made without one. */
export const operator = "holdfast";

/** Among the documents of a bucket: whose it is, if not the operator's. */
export const ownerDocument = "owner";

export async function ownerOf(bucket: Bucket): Promise<string> {
  const { documents } = bucket.knownConfig() ?? (await bucket.config());
  return documents[ownerDocument] ?? operator;
}

/** As S3 tells an account. */
export function accountAsXml(account: string): { readonly ID: string; readonly DisplayName: string } {
  return { ID: account, DisplayName: account };
}

/** What a grant may name. */
export interface Accounts {
  /** Of the bucket. */
  readonly owner: string;
  readonly all: ReadonlySet<string>;
}
