// PostObject, the form upload: a web page lets a browser put an object under a policy that the
// page's server signed.
import { anySize, isOldForm, judgeForm, signerOf, type SizeLimits } from "../../access/form-policy.ts";
import { mustBeGranted } from "../../access/grant.ts";
import { mustHaveRight, type Principal, type S3Credentials } from "../../access/principal.ts";
import { findExpectedChecksum } from "../../body/checksum.ts";
import { readForm, type Form } from "../../body/form-data.ts";
import { findMd5 } from "../../body/incoming-body.ts";
import { emptyAnswer, type Answer } from "../../http/answer.ts";
import { checkKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { formatXml } from "../../http/xml-out.ts";
import type { ObjectVersion } from "../../../objects/index.ts";
import { bucketOfAnybody, locationOf, type Service } from "../operation.ts";
import { headersOfForm } from "./form-headers.ts";
import { checksumHeaders, quoted, versionHeader } from "./object-headers.ts";
import { attributesOf } from "./put-attributes.ts";

/** The form has the signature; the request itself has none. */
export async function postObject(
  request: S3Request,
  service: Service,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
): Promise<Answer> {
  request.continue();
  const form = await readForm(request.headers["content-type"] ?? "", request.incoming);
  const { fields } = form;
  const key = (fields.get("key") ?? "").replaceAll("${filename}", form.fileName);
  if (key === "")
    throw new S3Error("InvalidArgument", {
      message:
        "Bucket POST must contain a field named 'key'.  If it is specified, please check the order of the fields.",
      details: { ArgumentName: "key", ArgumentValue: "" },
    });
  checkKey(key);
  const redirect = redirectOf(fields);
  const { principal, limits } = signedBy(form, request, service, key, findCredentials);
  if (principal.kind === "key") request.giveWay(false);
  // Turns the form into a put whose headers are the fields of the form. Drops the headers and the
  // query of the request itself, because they are not signed.
  const asked: S3Request = {
    ...request,
    principal,
    key,
    query: new Map(isOldForm(fields) ? [["AWSAccessKeyId", fields.get("awsaccesskeyid") ?? ""]] : []),
    headers: { host: request.headers.host, ...headersOfForm(form) },
  };
  const bucket = await bucketOfAnybody(asked, service);
  await mustBeGranted(asked, bucket, { operation: "PostObject", key });
  const attributes = await attributesOf(asked, service, bucket);
  const [checksum, md5] = [findExpectedChecksum(asked), findMd5(asked)];
  const version = await bucket.put(key, limited(form.file, limits), {
    ...attributes,
    checksum: checksum?.value === undefined ? { algorithm: "CRC64NVME" } : { ...checksum, value: checksum.value },
    ...(md5 === undefined ? {} : { md5: Buffer.from(md5, "base64").toString("hex") }),
    signal: request.signal,
  });
  return answerOf(fields, redirect, bucket.name, version, locationOf(request, bucket.name, key));
}

/** Throws AccessDenied, or the fault of the policy. Without a policy the request is anonymous. */
function signedBy(
  { fields }: Form,
  { bucket = "" }: S3Request,
  { region }: Service,
  key: string,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
): { readonly principal: Principal; readonly limits: SizeLimits } {
  const isSigned = fields.has("policy") || fields.has("signature") || fields.has("x-amz-signature");
  if (!isSigned) return { principal: { kind: "anonymous" }, limits: anySize };
  const credentials = signerOf(fields, region, findCredentials);
  mustHaveRight(credentials, "write", { bucket, prefix: key });
  return { principal: { kind: "key", credentials }, limits: judgeForm(fields, bucket, key) };
}

/** Throws InvalidArgument for an address that no browser could open. */
function redirectOf(fields: ReadonlyMap<string, string>): URL | undefined {
  const text = fields.get("success_action_redirect") ?? fields.get("redirect");
  if (text === undefined || text === "") return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:" || url?.protocol === "https:") return url;
  throw new S3Error("InvalidArgument", {
    message: "success_action_redirect is not the address of a page.",
    details: { ArgumentName: "success_action_redirect", ArgumentValue: text },
  });
}

async function* limited(file: AsyncIterable<Uint8Array>, { min, max }: SizeLimits): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const piece of file) {
    size += piece.length;
    if (size > max) throw new S3Error("EntityTooLarge", { details: { MaxSizeAllowed: String(max) } });
    yield piece;
  }
  if (size < min)
    throw new S3Error("EntityTooSmall", { details: { ProposedSize: String(size), MinSizeAllowed: String(min) } });
}

/** Returns the response that the form asks for: a redirect, 200, 201 with a document, or 204. */
function answerOf(
  fields: ReadonlyMap<string, string>,
  redirect: URL | undefined,
  bucket: string,
  version: ObjectVersion,
  location: string,
): Answer {
  const { key } = version;
  const etag = quoted(version.etag);
  const checksums = version.checksum === undefined ? {} : checksumHeaders(version.checksum);
  const headers = { etag, ...versionHeader(version), ...checksums };
  if (redirect !== undefined) {
    for (const [name, value] of Object.entries({ bucket, key, etag })) redirect.searchParams.set(name, value);
    return emptyAnswer(303, { ...headers, location: redirect.href });
  }
  const status = fields.get("success_action_status");
  if (status === "201") {
    const content = { Location: location, Bucket: bucket, Key: key, ETag: etag };
    return {
      status: 201,
      headers: { ...headers, location, "content-type": "application/xml" },
      body: formatXml("PostResponse", content, { isError: true }),
    };
  }
  return emptyAnswer(status === "200" ? 200 : 204, { ...headers, location });
}
