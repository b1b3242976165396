// Settings of a bucket that are stored as sent: CORS rules, policy, public-access block, ownership
// controls.
import type { Bucket } from "../../../objects/index.ts";
import { checkCors } from "../../access/cors.ts";
import { checkPolicy } from "../../access/check-policy.ts";
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
  /** True for a policy. */
  readonly isJson?: boolean;
  /** Throws if the document is invalid. If it returns a text, that text is stored instead. */
  readonly check: (bytes: Buffer, bucket: Bucket) => string | void | Promise<string | void>;
}

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
  return operation(`Get${what}`, "read", async (request, service) => {
    const text = (await (await bucketOf(request, service)).config()).documents[name];
    if (text === undefined) throw new S3Error(absent);
    return { status: 200, headers: { "content-type": isJson ? "application/json" : "application/xml" }, body: text };
  });
}

export function putDocument(name: string): Operation {
  const { what, isJson = false, check } = settingOf(name);
  return operation(`Put${what}`, "manage", async (request, service) => {
    const bucket = await bucketOf(request, service);
    const bytes = await readSmallBody(request, documentBytesMax);
    const kept = await check(bytes, bucket);
    await bucket.setDocument(name, kept ?? bytes.toString("utf8"));
    return emptyAnswer(isJson ? 204 : 200);
  });
}

export function deleteDocument(name: string): Operation {
  return operation(`Delete${settingOf(name).what}`, "manage", async (request, service) => {
    await (await bucketOf(request, service)).setDocument(name, undefined);
    return emptyAnswer(204);
  });
}

function settingOf(name: string): DocumentSetting {
  const setting = documentSettings[name];
  if (setting === undefined) throw new TypeError(`There is no setting ${name}.`);
  return setting;
}
