// Tags, in the header x-amz-tagging and as an XML document.
import { S3Error } from "../../http/s3-error.ts";
import { malformed, type XmlElement } from "../../http/xml-in.ts";
import type { XmlContent } from "../../http/xml-out.ts";

export type TagSet = Readonly<Record<string, string>>;

const objectTagsMax = 10;
const bucketTagsMax = 50;
const keyMax = 128;
const valueMax = 256;
const allowed = /^[\p{L}\p{Z}\p{N}_.:/=+\-@]*$/u;

/** Throws InvalidArgument or InvalidTag. */
export function parseTagHeader(text: string): TagSet {
  const pairs = text
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      const at = pair.indexOf("=");
      const [name, value] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
      return [decode(name), decode(value)] as const;
    });
  const names = pairs.map(([name]) => name);
  if (names.includes("") || new Set(names).size < names.length) throw invalidHeader();
  return checkTags(pairs, objectTagsMax);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch (cause) {
    throw invalidHeader(cause);
  }
}

function invalidHeader(cause?: unknown): Error {
  const message =
    "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query parameters without tag name duplicates.";
  return new S3Error("InvalidArgument", { message, cause, details: { ArgumentName: "x-amz-tagging" } });
}

export function tagsOfXml(root: XmlElement, { isBucket = false }: { readonly isBucket?: boolean } = {}): TagSet {
  const set = root.find("TagSet");
  if (set === undefined) throw malformed();
  return tagsOf(set, { isBucket });
}

/** Reads the `Tag` elements. Throws MalformedXML or InvalidTag. */
export function tagsOf(set: XmlElement, { isBucket }: { readonly isBucket: boolean }): TagSet {
  const pairs = set.all("Tag").map((tag) => [tag.getText("Key"), tag.getText("Value")] as const);
  return checkTags(pairs, isBucket ? bucketTagsMax : objectTagsMax);
}

export function tagsAsXml(tags: TagSet): XmlContent {
  const sorted = Object.entries(tags).sort(([one], [other]) => (one < other ? -1 : 1));
  return { TagSet: { Tag: sorted.map(([Key, Value]) => ({ Key, Value })) } };
}

function checkTags(pairs: readonly (readonly [string, string])[], max: number): TagSet {
  if (pairs.length > max)
    throw new S3Error("InvalidTag", {
      message: `${max === objectTagsMax ? "Object" : "Bucket"} tags cannot be greater than ${max}`,
    });
  const tags = new Map<string, string>();
  for (const [key, value] of pairs) {
    if (key === "" || key.length > keyMax || !allowed.test(key) || /^aws:/i.test(key))
      throw new S3Error("InvalidTag", { message: "The TagKey you have provided is invalid", details: { TagKey: key } });
    if (value.length > valueMax || !allowed.test(value))
      throw new S3Error("InvalidTag", {
        message: "The TagValue you have provided is invalid",
        details: { TagValue: value },
      });
    if (tags.has(key))
      throw new S3Error("InvalidTag", {
        message: "Cannot provide multiple Tags with the same key",
        details: { TagKey: key },
      });
    tags.set(key, value);
  }
  return Object.fromEntries(tags);
}
