// The keys that policy conditions can test: the request, its sender, and the tags of the object.
import { TLSSocket } from "node:tls";
import { isHoldfastError } from "../../index.ts";
import type { Bucket } from "../../objects/index.ts";
import { xmlBody } from "../body/small-document.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import { operator, ownerOf } from "./account.ts";
import { accountOf } from "./principal.ts";

/**
 * Returns the values of a key; undefined if the request has none, null if they cannot be
 * determined.
 */
export type FindFact = (name: string) => Promise<string | readonly string[] | undefined | null>;

export interface FactSource {
  readonly request: S3Request;
  readonly bucket: Bucket;
  /** The AWS name: "PutObject". */
  readonly operation: string;
  readonly key: string | undefined;
  readonly versionId: string | undefined;
  /** Replaces the `prefix` of the query. */
  readonly prefix?: string | undefined;
}

type Value = Awaited<ReturnType<FindFact>>;
type Fact = (source: FactSource) => Value | Promise<Value>;

const header =
  (name: string): Fact =>
  ({ request }) =>
    findHeader(request, name);
const parameter =
  (name: string): Fact =>
  ({ request }) =>
    request.query.get(name);

/** The account that signed the request. Undefined for an unsigned one. */
function senderOf({ request: { principal } }: FactSource): string | undefined {
  return principal.kind === "anonymous" ? undefined : (accountOf(principal) ?? operator);
}

const dayMs = 86_400_000;
const copiedHeaders = `acl content-sha256 grant-full-control grant-read grant-read-acp grant-write grant-write-acp
  metadata-directive object-ownership server-side-encryption server-side-encryption-aws-kms-key-id
  server-side-encryption-customer-algorithm storage-class website-redirect-location`.split(/\s+/);

/** By name, in lower case. */
const facts: Readonly<Record<string, Fact>> = {
  ...Object.fromEntries(copiedHeaders.map((name) => [`s3:x-amz-${name}`, header(`x-amz-${name}`)])),
  "s3:x-amz-copy-source": ({ request }) => findCopySource(request),
  "s3:objectcreationoperation": ({ operation }) => String(creating.has(operation)),
  "s3:if-match": header("if-match"),
  "s3:if-none-match": header("if-none-match"),
  "s3:prefix": ({ request, prefix }) => prefix ?? request.query.get("prefix"),
  "s3:delimiter": parameter("delimiter"),
  "s3:max-keys": parameter("max-keys"),
  "s3:versionid": ({ versionId }) => versionId,
  "s3:authtype": ({ request: { principal, query, headers } }) => {
    if (principal.kind === "anonymous") return undefined;
    if (headers.authorization) return "REST-HEADER";
    return query.has("Signature") || query.has("X-Amz-Signature") ? "REST-QUERY-STRING" : "POST";
  },
  "s3:signatureversion": ({ request: { principal, query } }) =>
    principal.kind === "anonymous" ? undefined : query.has("AWSAccessKeyId") ? "AWS" : "AWS4-HMAC-SHA256",
  "s3:signatureage": ({ request: { principal, verified } }) => {
    if (principal.kind === "anonymous") return undefined;
    return verified?.signedAtMs === undefined ? null : String(Math.max(0, Date.now() - verified.signedAtMs));
  },
  "s3:tlsversion": ({ request: { incoming } }) =>
    incoming.socket instanceof TLSSocket ? incoming.socket.getProtocol()?.replace("TLSv", "") : undefined,
  "s3:resourceaccount": ({ bucket }) => ownerOf(bucket),
  "s3:requestobjecttagkeys": async (source) => [...(await requestTags(source)).keys()],
  "s3:object-lock-mode": async (source) => (await lockOf(source)).mode,
  "s3:object-lock-retain-until-date": async (source) => (await lockOf(source)).until,
  "s3:object-lock-remaining-retention-days": async (source) => {
    const { until } = await lockOf(source);
    return until === undefined ? undefined : String(Math.ceil((Date.parse(until) - Date.now()) / dayMs));
  },
  "s3:object-lock-legal-hold": async (source) => (await lockOf(source)).hold,
  "aws:referer": header("referer"),
  "aws:useragent": header("user-agent"),
  "aws:securetransport": ({ request: { incoming } }) => String("encrypted" in incoming.socket),
  "aws:sourceip": ({ request: { incoming } }) => incoming.socket.remoteAddress?.replace(/^::ffff:/, ""),
  "aws:currenttime": () => new Date().toISOString(),
  "aws:epochtime": () => String(Math.floor(Date.now() / 1000)),
  "aws:principalaccount": senderOf,
  "aws:principalarn": (source) => {
    const sender = senderOf(source);
    return sender === undefined ? undefined : `arn:aws:iam::${sender}:root`;
  },
  "aws:principaltype": (source) => (senderOf(source) === undefined ? "Anonymous" : "Account"),
  "aws:userid": (source) => senderOf(source) ?? "anonymous",
  "aws:resourceaccount": ({ bucket }) => ownerOf(bucket),
};

/**
 * Operations that create an object and accept preconditions. The earlier steps of a multipart
 * upload do not.
 */
const creating = new Set(["PutObject", "PostObject", "CopyObject", "CompleteMultipartUpload"]);

/**
 * Decodes the source exactly as the copy does, without the version: an encoded character must not
 * make the policy see another object than the copy.
 */
function findCopySource(request: S3Request): string | undefined {
  const source = findHeader(request, "x-amz-copy-source")?.replace(/\?versionId=.*$/s, "");
  try {
    return source === undefined ? undefined : decodeURIComponent(source).replace(/^\//, "");
  } catch {
    // The copy itself refuses such a source.
    return source;
  }
}

const tagKey = /^s3:(existing|request)objecttag\/(.+)$/is;

/** True if a condition on this key can be evaluated. */
export function isFact(name: string): boolean {
  return Object.hasOwn(facts, name.toLowerCase()) || tagKey.test(name);
}

export function factsOf(source: FactSource): FindFact {
  return async (name) => {
    const [, kind, tag = ""] = tagKey.exec(name) ?? [];
    if (kind?.toLowerCase() === "request") return (await requestTags(source)).get(tag) ?? undefined;
    if (kind !== undefined) return (await existingTags(source))[tag];
    const lower = name.toLowerCase();
    return Object.hasOwn(facts, lower) ? await facts[lower]?.(source) : null;
  };
}

/** Returns the tags from a header, or from the document of PutObjectTagging. */
async function requestTags({ request, operation }: FactSource): Promise<URLSearchParams> {
  if (operation !== "PutObjectTagging") return new URLSearchParams(findHeader(request, "x-amz-tagging") ?? "");
  const tags = (await xmlBody(request, "Tagging")).find("TagSet")?.all("Tag") ?? [];
  return new URLSearchParams(tags.map((tag) => [tag.getText("Key"), tag.getText("Value")] as [string, string]));
}

interface Lock {
  readonly mode: string | undefined;
  readonly until: string | undefined;
  readonly hold: string | undefined;
}

/**
 * Returns a property from the headers, or from the document of PutObjectRetention or
 * PutObjectLegalHold.
 */
async function lockOf({ request, operation }: FactSource): Promise<Lock> {
  const [mode, until, hold] = ["mode", "retain-until-date", "legal-hold"].map((name) =>
    findHeader(request, `x-amz-object-lock-${name}`),
  );
  if (operation === "PutObjectRetention") {
    const root = await xmlBody(request, "Retention");
    return { mode: root.findText("Mode"), until: root.findText("RetainUntilDate"), hold: undefined };
  }
  if (operation === "PutObjectLegalHold")
    return { mode: undefined, until: undefined, hold: (await xmlBody(request, "LegalHold")).findText("Status") };
  return { mode, until, hold };
}

async function existingTags({ bucket, key, versionId }: FactSource): Promise<Readonly<Record<string, string>>> {
  if (key === undefined) return {};
  try {
    return await bucket.tags(key, { versionId });
  } catch (error) {
    // A missing object or a delete marker has no tags.
    if (isHoldfastError(error, "NO_SUCH_KEY") || isHoldfastError(error, "NO_SUCH_VERSION")) return {};
    throw error;
  }
}
