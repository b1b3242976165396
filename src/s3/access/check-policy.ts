// Checks a bucket policy when it is put, so that every statement of a stored policy can be
// evaluated.
import type { Bucket } from "../../objects/index.ts";
import { S3Error } from "../http/s3-error.ts";
import { existsFor } from "./actions.ts";
import { pathOf, readPolicy } from "./bucket-policy.ts";
import { isBlocked, isPublicPolicy } from "./public-access.ts";
import { matches } from "./wildcard.ts";

const policyBytesMax = 20 * 1024;

/** Throws MalformedPolicy, or AccessDenied if the bucket must not become public. */
export async function checkPolicy(bytes: Buffer, bucket: Bucket): Promise<void> {
  const text = bytes.toString("utf8");
  if (bytes.length > policyBytesMax)
    throw malformed("Policies are larger than the maximum size of 20480 bytes allowed.");
  const fault = readPolicy(text).faults[0] ?? findResourceFault(text, bucket.name);
  if (fault !== undefined) throw malformed(fault);
  const { publicAccessBlock } = (await bucket.config()).documents;
  if (isPublicPolicy(text) && isBlocked(publicAccessBlock, "BlockPublicPolicy")) throw new S3Error("AccessDenied");
}

/** Returns the reason why the bucket cannot have this policy, or undefined. */
function findResourceFault(text: string, bucket: string): string | undefined {
  const { Statement } = JSON.parse(text) as { readonly Statement: unknown };
  for (const each of [Statement].flat() as Readonly<Record<string, unknown>>[]) {
    const resources = [each.Resource ?? each.NotResource].flat() as string[];
    const foreign = resources.find((resource) => !matches(pathOf(resource)?.split("/")[0] ?? "", bucket));
    if (foreign !== undefined) return `Policy has invalid resource: ${foreign}`;
    if (each.Action === undefined || each.Resource === undefined) continue;
    const lost = ([each.Action].flat() as string[]).find((action) => !resources.some((path) => fits(action, path)));
    if (lost !== undefined) return `Action does not apply to any resource(s) in statement: ${lost}`;
  }
  return undefined;
}

/** True if the action applies to something that the resource names. */
function fits(action: string, resource: string): boolean {
  const path = pathOf(resource) ?? "";
  const isForObjects = path.includes("/") || path.endsWith("*");
  return (isForObjects && existsFor("objects", action)) || (!path.includes("/") && existsFor("buckets", action));
}

function malformed(message: string): Error {
  return new S3Error("MalformedPolicy", { message });
}
