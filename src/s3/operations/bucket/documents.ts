// Settings of a bucket that are kept as they were sent: rules for pages, policies, what is public.
import type { Bucket } from "../../../objects/index.ts";
import { checkCors } from "../../access/cors.ts";
import { isBlocked, isPublicPolicy, matches } from "../../access/public-access.ts";
import { readSmallBody } from "../../body/incoming-body.ts";
import { emptyAnswer } from "../../http/answer.ts";
import { S3Error, type S3ErrorCode } from "../../http/s3-error.ts";
import { parseXml } from "../../http/xml-in.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";
import { checkOwnership } from "./ownership.ts";

interface DocumentSetting {
  readonly what: string;
  readonly absent: S3ErrorCode;
  /** A policy is JSON. */
  readonly isJson?: boolean;
  /** Throws when the document cannot be one. */
  readonly check: (bytes: Buffer, bucket: Bucket) => void | Promise<void>;
}

/** Kept as they were sent. */
const documentSettings: Readonly<Record<string, DocumentSetting>> = {
  cors: {
    what: "BucketCors",
    absent: "NoSuchCORSConfiguration",
    check: (bytes) => checkCors(parseXml(bytes, "CORSConfiguration")),
  },
  policy: { what: "BucketPolicy", absent: "NoSuchBucketPolicy", isJson: true, check: checkPolicy },
  publicAccessBlock: {
    what: "PublicAccessBlock",
    absent: "NoSuchPublicAccessBlockConfiguration",
    check: (bytes) => void parseXml(bytes, "PublicAccessBlockConfiguration"),
  },
  ownershipControls: {
    what: "BucketOwnershipControls",
    absent: "OwnershipControlsNotFoundError",
    check: checkOwnership,
  },
};
const documentBytesMax = 64 * 1024;

export function getDocument(name: string): Operation {
  const { what, absent, isJson = false } = settingOf(name);
  return operation(`Get${what}`, "read", async (request, place) => {
    const text = (await (await bucketOf(request, place)).config()).documents[name];
    if (text === undefined) throw new S3Error(absent);
    return { status: 200, headers: { "content-type": isJson ? "application/json" : "application/xml" }, body: text };
  });
}

export function putDocument(name: string): Operation {
  const { what, isJson = false, check } = settingOf(name);
  return operation(`Put${what}`, "manage", async (request, place) => {
    const bucket = await bucketOf(request, place);
    const bytes = await readSmallBody(request, documentBytesMax);
    await check(bytes, bucket);
    await bucket.setDocument(name, bytes.toString("utf8"));
    return emptyAnswer(isJson ? 204 : 200);
  });
}

export function deleteDocument(name: string): Operation {
  return operation(`Delete${settingOf(name).what}`, "manage", async (request, place) => {
    await (await bucketOf(request, place)).setDocument(name, undefined);
    return emptyAnswer(204);
  });
}

function settingOf(name: string): DocumentSetting {
  const setting = documentSettings[name];
  if (setting === undefined) throw new TypeError(`There is no setting ${name}.`);
  return setting;
}

const policyBytesMax = 20 * 1024;

/** MalformedPolicy; AccessDenied where the bucket must not become public. */
async function checkPolicy(bytes: Buffer, bucket: Bucket): Promise<void> {
  const text = bytes.toString("utf8");
  if (bytes.length > policyBytesMax)
    throw malformedPolicy("Policies are larger than the maximum size of 20480 bytes allowed.");
  for (const statement of statementsOf(text)) checkStatement(statement, bucket.name);
  const { publicAccessBlock } = (await bucket.config()).documents;
  if (isPublicPolicy(text) && isBlocked(publicAccessBlock, "BlockPublicPolicy")) throw new S3Error("AccessDenied");
}

function statementsOf(text: string): readonly unknown[] {
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch (cause) {
    throw malformedPolicy("Policies must be valid JSON and the first byte must be '{'", cause);
  }
  if (typeof policy !== "object" || policy === null || Array.isArray(policy))
    throw malformedPolicy("Policies must be valid JSON and the first byte must be '{'");
  if (!("Statement" in policy)) throw malformedPolicy("Missing required field Statement");
  const list: readonly unknown[] = Array.isArray(policy.Statement) ? policy.Statement : [policy.Statement];
  if (list.length === 0) throw malformedPolicy("Could not parse the policy: Statement is empty!");
  return list;
}

function checkStatement(value: unknown, bucket: string): void {
  if (typeof value !== "object" || value === null) throw malformedPolicy("Could not parse the policy");
  const statement = value as Readonly<Record<string, unknown>>;
  if (statement.Effect !== "Allow" && statement.Effect !== "Deny")
    throw malformedPolicy("Invalid effect: it is Allow or Deny.");
  for (const name of ["Principal", "Action", "Resource"])
    if (statement[name] === undefined && statement[`Not${name}`] === undefined)
      throw malformedPolicy(`Missing required field ${name}`);
  const resources = [statement.Resource, statement.NotResource].flat().filter((each) => each !== undefined);
  for (const resource of resources) {
    const text = typeof resource === "string" ? resource : "";
    const [name = ""] = /^arn:aws:s3:::(.*)$/s.exec(text)?.[1]?.split("/") ?? [];
    if (!matches(name, bucket)) throw malformedPolicy("Policy has invalid resource");
  }
}

function malformedPolicy(message: string, cause?: unknown): Error {
  return new S3Error("MalformedPolicy", { message, cause });
}
