// The XML document in the body of a request. It is read once, however many callers need it.
import type { S3Request } from "../http/request.ts";
import { readXml, type XmlElement } from "../http/xml-in.ts";
import { readSmallBody } from "./incoming-body.ts";

/** Fits a list of 1,000 keys of 1,024 bytes each, escaped. Other documents are far smaller. */
const documentBytesMax = 8 * 1024 * 1024;

const documents = new WeakMap<S3Request["incoming"], Promise<XmlElement>>();

/** Throws MalformedXML. The first caller decides which roots are allowed. */
export async function xmlBody(request: S3Request, ...roots: readonly string[]): Promise<XmlElement> {
  const { incoming } = request;
  const known = documents.get(incoming);
  if (known !== undefined) return await known;
  const document = readSmallBody(request, documentBytesMax).then((bytes) => readXml(bytes, ...roots));
  documents.set(incoming, document);
  return await document;
}
