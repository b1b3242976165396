// The lifecycle configuration of a bucket: stored as sent, and translated into the rules of the
// store.
import { randomUUID } from "node:crypto";
import type { LifecycleRule } from "../../../objects/index.ts";
import { xmlBody } from "../../body/small-document.ts";
import { emptyAnswer, xmlAnswer } from "../../http/answer.ts";
import { S3Error } from "../../http/s3-error.ts";
import { malformed, type XmlElement } from "../../http/xml-in.ts";
import { formatXml, type XmlContent } from "../../http/xml-out.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";

const name = "lifecycle";
const rulesMax = 1000;
const idLengthMax = 255;

export const getLifecycle: Operation = operation(
  "GetBucketLifecycleConfiguration",
  "read",
  async (request, service) => {
    const { lifecycle, documents } = await (await bucketOf(request, service)).config();
    const text = documents[name];
    if (text !== undefined) return { status: 200, headers: { "content-type": "application/xml" }, body: text };
    // There is no document: a program set the rules through the library.
    if (lifecycle.length === 0) throw new S3Error("NoSuchLifecycleConfiguration");
    return xmlAnswer("LifecycleConfiguration", { Rule: lifecycle.map(ruleAsXml) });
  },
);

export const putLifecycle: Operation = operation(
  "PutBucketLifecycleConfiguration",
  "manage",
  async (request, service) => {
    const bucket = await bucketOf(request, service);
    const rules = (await xmlBody(request, "LifecycleConfiguration")).all("Rule");
    if (rules.length === 0 || rules.length > rulesMax) throw malformed();
    const ids = rules.map((rule) => rule.findText("ID") || randomUUID());
    if (ids.some((id) => id.length > idLengthMax))
      throw invalid(`ID length should not exceed allowed limit of ${idLengthMax}`);
    if (new Set(ids).size < ids.length) throw invalid("Rule ID must be unique. Found same ID for more than one rule");
    const read = rules.map((rule) => ruleOfXml(rule));
    const enabled = rules.map((rule) => isEnabled(rule));
    const text = formatXml("LifecycleConfiguration", {
      Rule: rules.map((rule, index) => ({ ...contentOf(rule), ID: ids[index] })),
    });
    await bucket.setDocument(name, text, {
      lifecycle: read.map((rule, index) => ({ ...rule, id: ids[index] ?? "" })).filter((_, index) => enabled[index]),
    });
    return emptyAnswer();
  },
);

export const deleteLifecycle: Operation = operation("DeleteBucketLifecycle", "manage", async (request, service) => {
  await (await bucketOf(request, service)).setDocument(name, undefined, { lifecycle: [] });
  return emptyAnswer(204);
});

function invalid(message: string): Error {
  return new S3Error("InvalidArgument", { message });
}

function contentOf({ children }: XmlElement): Record<string, XmlContent[]> {
  const content: Record<string, XmlContent[]> = {};
  for (const child of children)
    (content[child.name] ??= []).push(child.children.length === 0 ? child.text : contentOf(child));
  return content;
}

function isEnabled(rule: XmlElement): boolean {
  const status = rule.findText("Status");
  if (status !== "Enabled" && status !== "Disabled") throw malformed();
  return status === "Enabled";
}

const actions = ["Expiration", "NoncurrentVersionExpiration", "AbortIncompleteMultipartUpload"];

/** Throws MalformedXML, InvalidArgument, InvalidRequest or NotImplemented. */
function ruleOfXml(rule: XmlElement): LifecycleRule {
  for (const absent of ["Transition", "NoncurrentVersionTransition"])
    if (rule.find(absent) !== undefined)
      throw new S3Error("NotImplemented", { message: `Lifecycle rules with a ${absent} are not implemented.` });
  if (!actions.some((action) => rule.find(action) !== undefined))
    throw new S3Error("InvalidRequest", { message: "At least one action needs to be specified in a rule" });
  // A rule must have exactly one of these elements.
  if ((rule.find("Filter") === undefined) === (rule.find("Prefix") === undefined)) throw malformed();
  const noncurrent = rule.find("NoncurrentVersionExpiration");
  const abort = rule.find("AbortIncompleteMultipartUpload");
  const filter = filterOf(rule);
  const isOfVersions = [filter.tags, filter.bytesAbove, filter.bytesBelow].some((each) => each !== undefined);
  if (isOfVersions && (abort !== undefined || rule.find("Expiration")?.find("ExpiredObjectDeleteMarker") !== undefined))
    throw new S3Error("InvalidRequest", {
      message: "Uploads and delete markers have no tags and no size, so a rule for them cannot filter by those.",
    });
  return {
    ...filter,
    ...expirationOf(rule.find("Expiration")),
    ...(noncurrent === undefined
      ? {}
      : {
          noncurrent: {
            ...optional("days", countOf(noncurrent, "NoncurrentDays")),
            ...optional("keep", countOf(noncurrent, "NewerNoncurrentVersions")),
          },
        }),
    ...optional("abortUploadsDays", countOf(abort, "DaysAfterInitiation")),
  };
}

function filterOf(rule: XmlElement): Pick<LifecycleRule, "prefix" | "tags" | "bytesAbove" | "bytesBelow"> {
  const filter = rule.find("Filter");
  const parts = [filter, filter?.find("And")].filter((part) => part !== undefined);
  const [above, below] = ["ObjectSizeGreaterThan", "ObjectSizeLessThan"].map((name) =>
    parts.map((part) => bytesOf(part, name)).find((bytes) => bytes !== undefined),
  );
  if (above !== undefined && below !== undefined && above >= below)
    throw new S3Error("InvalidRequest", {
      message: "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'",
    });
  const tags = parts
    .flatMap((part) => part.all("Tag"))
    .map((tag) => [tag.getText("Key"), tag.getText("Value")] as const);
  const prefix = [rule, ...parts].map((part) => part.findText("Prefix")).find((text) => text !== undefined);
  return {
    ...optional("prefix", prefix),
    ...(tags.length === 0 ? {} : { tags: Object.fromEntries(tags) }),
    ...optional("bytesAbove", above),
    ...optional("bytesBelow", below),
  };
}

/** Throws MalformedXML. */
function bytesOf(part: XmlElement, element: string): number | undefined {
  const text = part.findText(element);
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,15}$/.test(text)) throw malformed();
  return Number(text);
}

type Expiration = Pick<LifecycleRule, "expireDays" | "expireAtMs" | "removeLoneMarkers">;

function expirationOf(expiration: XmlElement | undefined): Expiration {
  if (expiration === undefined) return {};
  const date = expiration.findText("Date");
  const marker = expiration.findText("ExpiredObjectDeleteMarker");
  const days = countOf(expiration, "Days");
  if ([date, marker, days].filter((each) => each !== undefined).length !== 1) throw malformed();
  return {
    ...optional("expireDays", days),
    ...optional("expireAtMs", date === undefined ? undefined : dateMs(date)),
    ...optional("removeLoneMarkers", marker?.toLowerCase() === "true" ? true : undefined),
  };
}

const dayMs = 86_400_000;

/** Parses a date at midnight UTC. Throws MalformedXML or InvalidArgument. */
function dateMs(text: string): number {
  const atMs = Date.parse(text);
  if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9:.]+(Z|[+-][0-9:]+)?)?$/.test(text) || Number.isNaN(atMs)) throw malformed();
  if (atMs % dayMs !== 0) throw invalid("'Date' must be at midnight GMT");
  return atMs;
}

function ruleAsXml(rule: LifecycleRule): XmlContent {
  const { id, prefix, tags = {}, bytesAbove, bytesBelow, expireDays, expireAtMs } = rule;
  const { noncurrent, abortUploadsDays, removeLoneMarkers } = rule;
  const Tag = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
  const sizes = { ObjectSizeGreaterThan: bytesAbove, ObjectSizeLessThan: bytesBelow };
  const count = [prefix, ...Tag, bytesAbove, bytesBelow].filter((each) => each !== undefined).length;
  const isSimple = count <= 1;
  const filter: XmlContent = count === 0 ? { Prefix: "" } : { Prefix: prefix, Tag, ...sizes };
  return {
    ID: id,
    Filter: isSimple ? filter : { And: filter },
    Status: "Enabled",
    Expiration:
      expireDays === undefined && expireAtMs === undefined && !removeLoneMarkers
        ? undefined
        : {
            Days: expireDays,
            Date: expireAtMs === undefined ? undefined : new Date(expireAtMs),
            ExpiredObjectDeleteMarker: removeLoneMarkers ? true : undefined,
          },
    NoncurrentVersionExpiration: noncurrent && {
      NoncurrentDays: noncurrent.days,
      NewerNoncurrentVersions: noncurrent.keep,
    },
    AbortIncompleteMultipartUpload:
      abortUploadsDays === undefined ? undefined : { DaysAfterInitiation: abortUploadsDays },
  };
}

function optional<Name extends string, T>(option: Name, value: T | undefined): { readonly [K in Name]?: T } {
  return value === undefined ? {} : ({ [option]: value } as { readonly [K in Name]?: T });
}

/** Parses a whole number. Throws MalformedXML, or InvalidArgument unless it is positive. */
function countOf(parent: XmlElement | undefined, element: string): number | undefined {
  const text = parent?.findText(element);
  if (text === undefined) return undefined;
  if (!/^-?[0-9]{1,9}$/.test(text)) throw malformed();
  if (Number(text) <= 0) throw invalid(`'${element}' for lifecycle actions must be a positive integer`);
  return Number(text);
}
