// GetObjectAttributes: everything about an object except its body.
import type { Bucket, ObjectVersion } from "../../../objects/index.ts";
import { xmlAnswer } from "../../http/answer.ts";
import { findHeader, type S3Request } from "../../http/request.ts";
import { S3Error } from "../../http/s3-error.ts";
import type { XmlContent } from "../../http/xml-out.ts";
import { bucketOf, operation, type Operation } from "../operation.ts";
import { checksumAsXml, versionHeader } from "./object-headers.ts";
import { headOf } from "./object-reads.ts";

const attributeNames = ["ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"];

export const getObjectAttributes: Operation = operation("GetObjectAttributes", "read", async (request, service) => {
  const bucket = await bucketOf(request, service);
  const asked = attributesAsked(request);
  const version = await headOf(request, bucket);
  const { checksum, etag, size } = version;
  const all: Record<string, XmlContent> = {
    ETag: etag,
    Checksum: checksum && checksumAsXml(checksum),
    ObjectParts: asked.includes("ObjectParts") ? await partsAsXml(request, version, bucket) : undefined,
    StorageClass: "STANDARD",
    ObjectSize: size,
  };
  const content = Object.fromEntries(Object.entries(all).filter(([name]) => asked.includes(name)));
  const headers = { "last-modified": version.lastModified.toUTCString(), ...versionHeader(version) };
  return xmlAnswer("GetObjectAttributesResponse", content, headers);
});

/** Throws InvalidRequest or InvalidArgument. */
function attributesAsked(request: S3Request): readonly string[] {
  const header = findHeader(request, "x-amz-object-attributes") ?? "";
  if (header.trim() === "")
    throw new S3Error("InvalidRequest", {
      message:
        "The x-amz-object-attributes header specifying the attributes to be retrieved is either missing or empty",
    });
  const asked = header.split(",").map((name) => name.trim());
  const unknown = asked.find((name) => !attributeNames.includes(name));
  if (unknown === undefined) return asked;
  throw new S3Error("InvalidArgument", {
    message: "Invalid attribute name specified.",
    details: { ArgumentName: "x-amz-object-attributes", ArgumentValue: unknown },
  });
}

async function partsAsXml(request: S3Request, version: ObjectVersion, bucket: Bucket): Promise<XmlContent> {
  const { key, versionId, checksum } = version;
  const parts = await bucket.parts(key, { versionId });
  if (parts.length === 0) return undefined;
  const [max, marker] = [
    countOf(request, "x-amz-max-parts") ?? 1000,
    countOf(request, "x-amz-part-number-marker") ?? 0,
  ];
  const Part = parts
    .map(({ size: Size, checksum: sum }, index) => ({
      PartNumber: index + 1,
      Size,
      ...(checksum === undefined ? {} : { [`Checksum${checksum.algorithm}`]: sum }),
    }))
    .slice(marker, marker + Math.min(max, 1000));
  const last = Part.at(-1)?.PartNumber ?? marker;
  return {
    PartsCount: parts.length,
    PartNumberMarker: marker,
    NextPartNumberMarker: last,
    MaxParts: max,
    IsTruncated: last < parts.length,
    Part,
  };
}

function countOf(request: S3Request, name: string): number | undefined {
  const text = findHeader(request, name);
  if (text === undefined || /^[0-9]{1,9}$/.test(text)) return text === undefined ? undefined : Number(text);
  const message = `Provided ${name} not an integer or within integer range`;
  throw new S3Error("InvalidArgument", { message, details: { ArgumentName: name, ArgumentValue: text } });
}
