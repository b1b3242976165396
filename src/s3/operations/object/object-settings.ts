// What can be set on an object after it was written: tags, retention, legal hold.
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { getKey } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed } from "../../http/xml-in.ts";
import { versionHeader } from "./object-headers.ts";
import { isOn, mustHaveLock, retentionDate, retentionMode } from "./put-attributes.ts";
import { headOf } from "./object-reads.ts";
import { bypasses } from "./object-writes.ts";
import { bucketOf, findVersionId, operation, xmlBody, type Operation } from "../operation.ts";
import { tagsAsXml, tagsOfXml } from "./tag-set.ts";

export const getObjectTagging: Operation = operation("GetObjectTagging", "read", async (request, place) => {
  const version = await headOf(request, place);
  const tags = await (await bucketOf(request, place)).tags(version.key, { versionId: version.versionId });
  return xmlAnswer("Tagging", tagsAsXml(tags), versionHeader(version));
});

export const putObjectTagging: Operation = operation("PutObjectTagging", "write", async (request, place) => {
  const version = await headOf(request, place);
  const tags = tagsOfXml(await xmlBody(request, "Tagging"));
  await (await bucketOf(request, place)).setTags(version.key, tags, { versionId: version.versionId });
  return emptyAnswer(200, versionHeader(version));
});

export const deleteObjectTagging: Operation = operation("DeleteObjectTagging", "write", async (request, place) => {
  const version = await headOf(request, place);
  await (await bucketOf(request, place)).setTags(version.key, {}, { versionId: version.versionId });
  return emptyAnswer(204, versionHeader(version));
});

export const getObjectRetention: Operation = operation("GetObjectRetention", "read", async (request, place) => {
  await mustHaveLock(await bucketOf(request, place));
  const { retention } = await headOf(request, place);
  if (retention === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  return xmlAnswer("Retention", { Mode: retention.mode.toUpperCase(), RetainUntilDate: retention.until });
});

export const putObjectRetention: Operation = operation("PutObjectRetention", "write", async (request, place) => {
  const bucket = await bucketOf(request, place);
  await mustHaveLock(bucket);
  const root = await xmlBody(request, "Retention");
  const [mode, until] = [root.findText("Mode"), root.findText("RetainUntilDate")];
  if ((mode === undefined) !== (until === undefined)) throw malformed();
  const retention =
    mode === undefined || until === undefined ? undefined : { mode: modeOfXml(mode), until: retentionDate(until) };
  await bucket.setRetention(getKey(request), retention, {
    versionId: findVersionId(request),
    bypassGovernance: await bypasses(request, bucket),
  });
  return emptyAnswer();
});

function modeOfXml(text: string): "governance" | "compliance" {
  try {
    return retentionMode(text);
  } catch (cause) {
    throw malformed(cause);
  }
}

export const getObjectLegalHold: Operation = operation("GetObjectLegalHold", "read", async (request, place) => {
  await mustHaveLock(await bucketOf(request, place));
  const { legalHold } = await headOf(request, place);
  if (legalHold === undefined) throw new S3Error("NoSuchObjectLockConfiguration");
  return xmlAnswer("LegalHold", { Status: legalHold ? "ON" : "OFF" });
});

export const putObjectLegalHold: Operation = operation("PutObjectLegalHold", "write", async (request, place) => {
  const bucket = await bucketOf(request, place);
  await mustHaveLock(bucket);
  const status = (await xmlBody(request, "LegalHold")).findText("Status");
  if (status !== "ON" && status !== "OFF") throw malformed();
  await bucket.setLegalHold(getKey(request), isOn(status), { versionId: findVersionId(request) });
  return emptyAnswer();
});
