// Settings of a bucket that are kept as they were sent: rules for pages, policies, what is public.
import type { Bucket } from "../../../objects/index.ts";
import { checkCors } from "../../access/cors.ts";
import { checkPolicy } from "../../access/bucket-policy.ts";
import { blockAsXml } from "../../access/public-access.ts";
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
  /** Throws when the document cannot be one. What it gives is kept in place of what was sent. */
  readonly check: (bytes: Buffer, bucket: Bucket) => string | void | Promise<string | void>;
}

/** Kept as they were sent, unless their check says otherwise. */
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
    check: (bytes) => blockAsXml(parseXml(bytes, "PublicAccessBlockConfiguration")),
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
    const kept = await check(bytes, bucket);
    await bucket.setDocument(name, kept ?? bytes.toString("utf8"));
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
