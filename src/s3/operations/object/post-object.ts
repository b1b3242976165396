// Form uploads: a page lets a browser put an object under a policy that the page's server has signed.
import { anySize, judgeForm, signerOf, type SizeLimits } from "../../access/form-policy.ts";
import { mustHaveRight, type Principal, type S3Credentials } from "../../access/principal.ts";
import { cannedGrants, formatGrants } from "../../access/access-list.ts";
import { mustBeGranted } from "../../access/grant.ts";
import { checksumHeader, checksumAlgorithms } from "../../body/checksum.ts";
import { readForm, type Form } from "../../body/form-data.ts";
import { emptyAnswer, type Answer } from "../../http/answer.ts";
import { formatXml } from "../../http/xml-out.ts";
import { parseXml } from "../../http/xml-in.ts";
import { checkKey, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import type { ObjectVersion, PutOptions } from "../../../objects/index.ts";
import { checksumHeaders, defaultContentType, findHeaderValue, quoted, versionHeader } from "./object-headers.ts";
import { checkMetadata, metadataPrefix, mustMayShare } from "./put-attributes.ts";
import { bucketOf, locationOf, type Place } from "../operation.ts";
import { parseTagHeader, tagsOfXml } from "./tag-set.ts";

/** The signature is in the form: the request itself has none. */
export async function postObject(
  request: S3Request,
  place: Place,
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
  const { principal, limits } = await allowedBy(form, request, place, key, findCredentials);
  const bucket = await bucketOf(request, place);
  const options = optionsOf(form);
  if (fields.has("acl")) await mustMayShare(principal, bucket, cannedGrants(fields.get("acl") ?? ""));
  const version = await bucket.put(key, limited(form.file, limits), { ...options, signal: request.signal });
  return answerOf(fields, bucket.name, version, locationOf(request, bucket.name, key));
}

/** AccessDenied, and what is wrong with the policy. Without one the request is anonymous. */
async function allowedBy(
  { fields }: Form,
  request: S3Request,
  place: Place,
  key: string,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
): Promise<{ readonly principal: Principal; readonly limits: SizeLimits }> {
  const isSigned = fields.has("policy") || fields.has("signature") || fields.has("x-amz-signature");
  const principal: Principal = isSigned
    ? { kind: "key", credentials: signerOf(fields, place.region, findCredentials) }
    : { kind: "anonymous" };
  if (principal.kind === "key") mustHaveRight(principal.credentials, "write", { bucket: request.bucket, prefix: key });
  await mustBeGranted({ ...request, principal }, await bucketOf(request, place), { operation: "PutObject", key });
  return { principal, limits: isSigned ? judgeForm(fields, request.bucket ?? "", key) : anySize };
}

const contentFields = {
  "content-type": "contentType",
  "cache-control": "cacheControl",
  "content-disposition": "contentDisposition",
  "content-encoding": "contentEncoding",
  "content-language": "contentLanguage",
  expires: "expires",
} as const;

function optionsOf({ fields, fileType }: Form): PutOptions {
  const options: PutOptions = { contentType: fileType || defaultContentType };
  for (const [field, option] of Object.entries(contentFields)) {
    const value = fields.get(field);
    if (value !== undefined && findHeaderValue(value) === undefined)
      throw new S3Error("InvalidArgument", { details: { ArgumentName: field } });
    if (value !== undefined && value !== "") options[option] = value;
  }
  const algorithm = checksumAlgorithms.find((name) => fields.has(checksumHeader(name)));
  const [header, document, acl] = ["x-amz-tagging", "tagging", "acl"].map((name) => fields.get(name));
  return {
    ...options,
    metadata: metadataOf(fields),
    ...(header === undefined ? {} : { tags: parseTagHeader(header) }),
    ...(document === undefined ? {} : { tags: tagsOfXml(parseXml(Buffer.from(document), "Tagging")) }),
    ...(acl === undefined ? {} : { acl: formatGrants(cannedGrants(acl)) }),
    checksum:
      algorithm === undefined
        ? { algorithm: "CRC64NVME" }
        : { algorithm, value: fields.get(checksumHeader(algorithm)) ?? "" },
  };
}

function metadataOf(fields: ReadonlyMap<string, string>): Record<string, string> {
  const own = [...fields].filter(([name]) => name.startsWith(metadataPrefix));
  return checkMetadata(own.map(([name, value]) => [name.slice(metadataPrefix.length), value] as const));
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

/** As the form asks: a redirection, or 200, 201 with a document, or 204. */
function answerOf(
  fields: ReadonlyMap<string, string>,
  bucket: string,
  version: ObjectVersion,
  location: string,
): Answer {
  const { key } = version;
  const etag = quoted(version.etag);
  const checksums = version.checksum === undefined ? {} : checksumHeaders(version.checksum);
  const headers = { etag, ...versionHeader(version), ...checksums };
  const redirect = fields.get("success_action_redirect") ?? fields.get("redirect");
  if (redirect !== undefined && URL.canParse(redirect)) {
    const url = new URL(redirect);
    for (const [name, value] of Object.entries({ bucket, key, etag })) url.searchParams.set(name, value);
    return emptyAnswer(303, { ...headers, location: url.href });
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
