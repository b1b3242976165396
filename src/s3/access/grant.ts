// Whether a bucket lets a request in: those of its own account, and what it grants to others.
import type { Bucket } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import { ownerOf } from "./account.ts";
import { accountOf, type Principal } from "./principal.ts";
import { isGranted, type GrantedRequest } from "./public-access.ts";

/** AccessDenied. The operator has all buckets. */
export async function mustBeGranted(
  principal: Principal,
  bucket: Bucket,
  {
    operation,
    key,
    versionId,
  }: Pick<GrantedRequest, "operation" | "key"> & { readonly versionId?: string | undefined },
): Promise<void> {
  const account = accountOf(principal);
  if (principal.kind === "key" && (account === undefined || (await ownerOf(bucket)) === account)) return;
  if (!(await isGranted(bucket, { operation, key, versionId, account }))) throw new S3Error("AccessDenied");
}
