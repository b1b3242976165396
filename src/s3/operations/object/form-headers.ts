// Translates the fields of a form into the headers they stand for: a form upload is checked and
// stored like a put with these headers.
import type { IncomingHttpHeaders } from "node:http";
import { checksumAlgorithms, checksumHeader } from "../../body/checksum.ts";
import type { Form } from "../../body/form-data.ts";
import { S3Error } from "../../http/s3-error.ts";
import { parseXml } from "../../http/xml-in.ts";
import { contentHeaders, findHeaderValue } from "./object-headers.ts";
import { metadataPrefix } from "./put-attributes.ts";
import { tagsOfXml } from "./tag-set.ts";

const names = new Set([
  ...Object.values(contentHeaders),
  "content-md5",
  ...["acl", "tagging", "storage-class", "website-redirect-location", "sdk-checksum-algorithm"].map(amz),
  ...["mode", "retain-until-date", "legal-hold"].map((name) => amz(`object-lock-${name}`)),
  ...checksumAlgorithms.map(checksumHeader),
]);
const beginnings = [metadataPrefix, "x-amz-grant-", "x-amz-server-side-encryption"];
/** Fields of the signature. */
const signing = new Set(["algorithm", "credential", "date", "signature", "security-token"].map(amz));

function amz(name: string): string {
  return `x-amz-${name}`;
}

/**
 * Throws InvalidArgument or MalformedXML, and NotImplemented for a field that a put does not know:
 * such a field must not be dropped silently.
 */
export function headersOfForm({ fields, fileType }: Form): IncomingHttpHeaders {
  const headers: Record<string, string> = fileType ? { "content-type": fileType } : {};
  const pairs = [...fields].map(
    ([name, value]) => [standsFor(name), name === "tagging" ? tagsOf(value) : value] as const,
  );
  for (const [name, value] of pairs) {
    const isMeant = names.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
    if (!isMeant && name.startsWith("x-amz-") && !signing.has(name))
      throw new S3Error("NotImplemented", {
        message: `The field ${name} is not implemented.`,
        details: { Header: name },
      });
    if (!isMeant || value === "") continue;
    // A form may contain both `acl` and `x-amz-acl`.
    const isTwice = pairs.filter(([other]) => other === name).length > 1;
    if (isTwice || findHeaderValue(value) === undefined)
      throw new S3Error("InvalidArgument", { details: { ArgumentName: name } });
    // Like a header with UTF-8 metadata, which Node decodes as Latin-1.
    headers[name] = name.startsWith(metadataPrefix) ? Buffer.from(value).toString("latin1") : value;
  }
  return headers;
}

function standsFor(field: string): string {
  return field === "acl" || field === "tagging" ? amz(field) : field;
}

/** Converts the document of a field to the format of the header. */
function tagsOf(document: string): string {
  return new URLSearchParams(tagsOfXml(parseXml(Buffer.from(document), "Tagging"))).toString();
}
