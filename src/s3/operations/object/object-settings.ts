// Operations on the tags, retention and legal hold of an existing object.
import { xmlBody } from "../../body/small-document.ts";
import { mayRelease } from "../../access/grant.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { getKey } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed } from "../../http/xml-in.ts";
import { versionHeader } from "./object-headers.ts";
import { isOn, mustHaveLock, retentionDate, retentionMode } from "./put-attributes.ts";
import { headOf } from "./object-reads.ts";
import { bypasses } from "./object-writes.ts";
import { bucketOf, findVersionId, operation, type Operation } from "../operation.ts";
import { tagsAsXml, tagsOfXml } from "./tag-set.ts";

export const getObjectTagging: Operation = operation("GetObjectTagging", "read", async (request, service) => {
  const version = await headOf(request, await bucketOf(request, service));
  const tags = await (await bucketOf(request, service)).tags(version.key, { versionId: version.versionId });
  return xmlAnswer("Tagging", tagsAsXml(tags), versionHeader(version));
});

export const putObjectTagging: Operation = operation("PutObjectTagging", "write", async (request, service) => {
  const version = await headOf(request, await bucketOf(request, service));
  const tags = tagsOfXml(await xmlBody(request, "Tagging"));
  await (await bucketOf(request, service)).setTags(version.key, tags, { versionId: version.versionId });
  return emptyAnswer(200, versionHeader(version));
});

export const deleteObjectTagging: Operation = operation("DeleteObjectTagging", "write", async (request, service) => {
  const version = await headOf(request, await bucketOf(request, service));
  await (await bucketOf(request, service)).setTags(version.key, {}, { versionId: version.versionId });
  return emptyAnswer(204, versionHeader(version));
});

export const getObjectRetention: Operation = operation("GetObjectRetention", "read", async (request, service) => {
  await mustHaveLock(await bucketOf(request, service));
  const { retention } = await headOf(request, await bucketOf(request, service));
  if (retention === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  return xmlAnswer("Retention", { Mode: retention.mode.toUpperCase(), RetainUntilDate: retention.until });
});

export const putObjectRetention: Operation = operation("PutObjectRetention", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  await mustHaveLock(bucket);
  const root = await xmlBody(request, "Retention");
  const [mode, until] = [root.findText("Mode"), root.findText("RetainUntilDate")];
  if ((mode === undefined) !== (until === undefined)) throw malformed();
  const retention =
    mode === undefined || until === undefined ? undefined : { mode: modeOfXml(mode), until: retentionDate(until) };
  const [key, versionId] = [getKey(request), findVersionId(request)];
  const bypassGovernance = await bypasses(request, bucket, { key, versionId });
  await bucket.setRetention(key, retention, { versionId, bypassGovernance });
  return emptyAnswer();
});

function modeOfXml(text: string): "governance" | "compliance" {
  try {
    return retentionMode(text);
  } catch (cause) {
    throw malformed(cause);
  }
}

export const getObjectLegalHold: Operation = operation("GetObjectLegalHold", "read", async (request, service) => {
  await mustHaveLock(await bucketOf(request, service));
  const { legalHold } = await headOf(request, await bucketOf(request, service));
  if (legalHold === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  return xmlAnswer("LegalHold", { Status: legalHold ? "ON" : "OFF" });
});

export const putObjectLegalHold: Operation = operation("PutObjectLegalHold", "write", async (request, service) => {
  const bucket = await bucketOf(request, service);
  await mustHaveLock(bucket);
  const status = (await xmlBody(request, "LegalHold")).findText("Status");
  if (status !== "ON" && status !== "OFF") throw malformed();
  const [key, versionId] = [getKey(request), findVersionId(request)];
  // A key pair that may write can set a hold. Lifting it needs another right.
  if (!isOn(status) && !(await mayRelease(request, bucket, { operation: "PutObjectLegalHold", key, versionId })))
    throw new S3Error("AccessDenied");
  await bucket.setLegalHold(key, isOn(status), { versionId });
  return emptyAnswer();
});
