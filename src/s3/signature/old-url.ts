// Presigned URLs of signature version 2, which boto3 and the AWS CLI still create by default.
// Requests with a version 2 signature in a header are refused.
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { encodeUri } from "../http/raw-target.ts";
import { S3Error } from "../http/s3-error.ts";
import type { SignedRequest } from "./canonical-request.ts";
import { isSame } from "./signing-key.ts";

export interface OldUrl {
  readonly accessKeyId: string;
  /** Headers that the query contains. */
  readonly headers: Readonly<Record<string, string>>;
}

export interface OldUrlVerifier {
  readonly nowMs: number;
  /** The signed path: it includes the bucket, even if that is in the host name. */
  readonly path: string;
  /**
   * Query parameters that select the operation. They must be signed in addition to those that
   * version 2 lists.
   */
  readonly subResources: ReadonlySet<string>;
  readonly findSecret: (accessKeyId: string) => string | undefined;
}

const expiresMaxMs = 7 * 86_400_000;

export function isOldUrl({ target: { query } }: SignedRequest): boolean {
  return ["AWSAccessKeyId", "Signature"].every((wanted) => query.some(([name]) => name === wanted));
}

/** Throws AccessDenied, InvalidAccessKeyId or SignatureDoesNotMatch. */
export function verifyOldUrl(request: SignedRequest, verifier: OldUrlVerifier): OldUrl {
  const { nowMs, findSecret } = verifier;
  const parameters = new Map(request.target.query);
  const [accessKeyId = "", signature = "", expires = ""] = ["AWSAccessKeyId", "Signature", "Expires"].map((name) =>
    parameters.get(name),
  );
  if (!/^-?[0-9]{1,12}$/.test(expires))
    throw new S3Error("AccessDenied", { message: "Invalid date (should be seconds since epoch)" });
  const endMs = Number(expires) * 1000;
  const secret = findSecret(accessKeyId);
  if (secret === undefined) throw new S3Error("InvalidAccessKeyId", { details: { AWSAccessKeyId: accessKeyId } });
  if (endMs <= nowMs)
    throw new S3Error("AccessDenied", {
      message: "Request has expired",
      details: { Expires: new Date(endMs).toISOString(), ServerTime: new Date(nowMs).toISOString() },
    });
  if (endMs > nowMs + expiresMaxMs)
    throw new S3Error("AccessDenied", { message: "A presigned URL is valid for a week at most" });
  const headers = headersOf(request.target.query);
  const text = stringToSign(request, { ...headers, ...request.headers }, expires, verifier);
  const right = createHmac("sha1", secret).update(text, "utf8").digest("base64");
  if (!isSame(right, signature))
    throw new S3Error("SignatureDoesNotMatch", {
      details: { AWSAccessKeyId: accessKeyId, StringToSign: text, SignatureProvided: signature },
    });
  return { accessKeyId, headers };
}

/** The headers that a URL signs are in its query. */
function headersOf(query: SignedRequest["target"]["query"]): Readonly<Record<string, string>> {
  const own = query.map(([name, value]) => [name.toLowerCase(), value] as const);
  return Object.fromEntries(
    own.filter(([name]) => name.startsWith("x-amz-") || name === "content-type" || name === "content-md5"),
  );
}

function stringToSign(
  { method, target: { query } }: SignedRequest,
  headers: IncomingHttpHeaders,
  expires: string,
  { path, subResources }: OldUrlVerifier,
): string {
  const amz = Object.keys(headers)
    .filter((name) => name.startsWith("x-amz-"))
    .sort()
    .map((name) => `${name}:${String(headers[name] ?? "").trim()}\n`);
  const named = query.filter(
    ([name]) => signedNames.has(name) || subResources.has(name) || name.startsWith("response-"),
  );
  const pairs = named
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, value]) => (value === "" ? name : `${name}=${value}`));
  const resource = path.split("/").map(encodeUri).join("/") + (pairs.length === 0 ? "" : `?${pairs.join("&")}`);
  const { "content-md5": md5 = "", "content-type": type = "" } = headers;
  return [method, md5, type, expires, amz.join("") + resource].join("\n");
}

/** Returns the query parameters that version 2 signs. */
const signedNames = new Set([
  "accelerate",
  "acl",
  "analytics",
  "cors",
  "delete",
  "inventory",
  "lifecycle",
  "location",
  "logging",
  "metrics",
  "notification",
  "object-lock",
  "partNumber",
  "policy",
  "replication",
  "requestPayment",
  "restore",
  "select",
  "select-type",
  "storageClass",
  "tagging",
  "torrent",
  "uploadId",
  "uploads",
  "versionId",
  "versioning",
  "versions",
  "website",
]);
