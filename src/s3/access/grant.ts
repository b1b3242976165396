// Whether a bucket lets a request in: those of its own account, and what it grants to others.
import type { Bucket } from "../../objects/index.ts";
import type { S3Request } from "../http/request.ts";
import { S3Error } from "../http/s3-error.ts";
import { ownerOf } from "./account.ts";
import { factsOf } from "./policy-condition.ts";
import { accountOf } from "./principal.ts";
import { isGranted, type GrantedRequest } from "./public-access.ts";

/** AccessDenied. The operator has all buckets. */
export async function mustBeGranted(
  request: S3Request,
  bucket: Bucket,
  {
    operation,
    key,
    versionId,
  }: Pick<GrantedRequest, "operation" | "key"> & { readonly versionId?: string | undefined },
): Promise<void> {
  const { principal } = request;
  const account = accountOf(principal);
  if (principal.kind === "key" && (account === undefined || (await ownerOf(bucket)) === account)) return;
  const find = factsOf(request, bucket, key);
  if (!(await isGranted(bucket, { operation, key, versionId, account, find }))) throw new S3Error("AccessDenied");
}
