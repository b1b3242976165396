// The settings of a bucket: versioning, tags and object lock.
import type { BucketConfig } from "../../../objects/index.ts";
import { xmlBody } from "../../body/small-document.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed, type XmlElement } from "../../http/xml-in.ts";
import { tagsAsXml, tagsOfXml } from "../object/tag-set.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";

export const getVersioning: Operation = operation("GetBucketVersioning", "read", async (request, service) => {
  const state = await (await bucketOf(request, service)).versioning();
  const Status = state === "off" ? undefined : state === "enabled" ? "Enabled" : "Suspended";
  return xmlAnswer("VersioningConfiguration", { Status });
});

export const putVersioning: Operation = operation("PutBucketVersioning", "manage", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const root = await xmlBody(request, "VersioningConfiguration");
  const status = root.findText("Status");
  if (root.findText("MfaDelete") === "Enabled")
    throw new S3Error("NotImplemented", { message: "MfaDelete is not implemented." });
  if (status !== "Enabled" && status !== "Suspended") throw new S3Error("IllegalVersioningConfigurationException");
  if (status === "Suspended" && (await bucket.config()).objectLock)
    throw new S3Error("InvalidBucketState", {
      message: "An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.",
    });
  await bucket.setVersioning(status === "Enabled" ? "enabled" : "suspended");
  return emptyAnswer();
});

export const getBucketTagging: Operation = operation("GetBucketTagging", "read", async (request, service) => {
  const { tags } = await (await bucketOf(request, service)).config();
  if (Object.keys(tags).length === 0) throw new S3Error("NoSuchTagSet");
  return xmlAnswer("Tagging", tagsAsXml(tags));
});

export const putBucketTagging: Operation = operation("PutBucketTagging", "manage", async (request, service) => {
  const bucket = await bucketOf(request, service);
  await bucket.setConfig({ tags: tagsOfXml(await xmlBody(request, "Tagging"), { isBucket: true }) });
  return emptyAnswer(204);
});

export const deleteBucketTagging: Operation = operation("DeleteBucketTagging", "manage", async (request, service) => {
  await (await bucketOf(request, service)).setConfig({ tags: {} });
  return emptyAnswer(204);
});

/** The document that records a retention period given in years, because the store only knows days. */
const yearsName = "defaultRetentionYears";
const yearDays = 365;

export const getObjectLock: Operation = operation("GetObjectLockConfiguration", "read", async (request, service) => {
  const { objectLock, defaultRetention, documents } = await (await bucketOf(request, service)).config();
  if (!objectLock) throw new S3Error("ObjectLockConfigurationNotFoundError");
  const years = Number(documents[yearsName] ?? 0);
  const Rule = defaultRetention && {
    DefaultRetention: {
      Mode: defaultRetention.mode.toUpperCase(),
      ...(years * yearDays === defaultRetention.days ? { Years: years } : { Days: defaultRetention.days }),
    },
  };
  return xmlAnswer("ObjectLockConfiguration", { ObjectLockEnabled: "Enabled", Rule });
});

export const putObjectLock: Operation = operation("PutObjectLockConfiguration", "manage", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const root = await xmlBody(request, "ObjectLockConfiguration");
  if (root.findText("ObjectLockEnabled") !== "Enabled") throw malformed();
  const { versioning } = await bucket.config();
  if (versioning !== "enabled")
    throw new S3Error("InvalidBucketState", {
      message: "Versioning must be 'Enabled' on the bucket to apply a Object Lock configuration",
    });
  const rule = root.find("Rule");
  const retention = rule?.find("DefaultRetention");
  if (rule !== undefined && retention === undefined) throw malformed();
  const found = retention && retentionOfXml(retention);
  await bucket.setDocument(yearsName, found?.years === undefined ? undefined : String(found.years), {
    objectLock: true,
    defaultRetention: found && { mode: found.mode, days: found.days },
  });
  return emptyAnswer();
});

function retentionOfXml(
  element: XmlElement,
): NonNullable<BucketConfig["defaultRetention"]> & { readonly years: number | undefined } {
  const mode = { GOVERNANCE: "governance", COMPLIANCE: "compliance" }[element.getText("Mode")] as
    "governance" | "compliance" | undefined;
  const [days, years] = [periodOf(element, "Days"), periodOf(element, "Years")];
  if (mode === undefined || (days === undefined) === (years === undefined)) throw malformed();
  return { mode, days: days ?? (years ?? 0) * yearDays, years };
}

/** Throws InvalidRetentionPeriod or MalformedXML. */
function periodOf(element: XmlElement, name: string): number | undefined {
  const text = element.findText(name);
  if (text === undefined) return undefined;
  if (!/^-?[0-9]{1,9}$/.test(text)) throw malformed();
  if (Number(text) > 0 && Number(text) * (name === "Years" ? yearDays : 1) <= periodDaysMax) return Number(text);
  throw new S3Error("InvalidRetentionPeriod", {
    message: `Default retention period must be a positive integer value for '${name}'`,
  });
}

const periodDaysMax = 36_500;
