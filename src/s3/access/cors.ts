// Cross-origin requests (CORS): what the CORS document of a bucket allows a web page to do.
import type { Bucket } from "../../objects/index.ts";
import { emptyAnswer, type Answer } from "../http/answer.ts";
import { findHeader, type S3Request } from "../http/request.ts";
import { S3Error } from "../http/s3-error.ts";
import { malformed, parseXml, type XmlElement } from "../http/xml-in.ts";
import { matches } from "./wildcard.ts";

interface CorsRequest {
  readonly origin: string;
  readonly method: string;
  /** In lower case. */
  readonly headers: readonly string[];
}

type Headers = Readonly<Record<string, string>>;

/** Answers a preflight request. Throws AccessForbidden or BadRequest. */
export async function preflight(headers: S3Request["headers"], bucket: Bucket | undefined): Promise<Answer> {
  const [origin, method] = ["origin", "access-control-request-method"].map((name) => findHeader({ headers }, name));
  if (origin === undefined || method === undefined)
    throw new S3Error("BadRequest", { message: "Insufficient information. Origin request header needed." });
  const wanted = (findHeader({ headers }, "access-control-request-headers") ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "");
  const allowed = bucket === undefined ? undefined : await findAllowed(bucket, { origin, method, headers: wanted });
  if (allowed !== undefined) return emptyAnswer(200, allowed);
  throw new S3Error("AccessForbidden", {
    message:
      "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec.",
  });
}

/**
 * Headers of the response to a cross-origin request, including errors. Empty if the origin is not
 * allowed.
 */
export async function corsHeaders(
  { headers, method }: Pick<S3Request, "headers" | "method">,
  findBucket: () => Promise<Bucket | undefined>,
): Promise<Headers> {
  const { origin, "access-control-request-method": asked = method } = headers;
  if (origin === undefined) return {};
  const bucket = await findBucket().catch(() => undefined);
  return (bucket && (await findAllowed(bucket, { origin, method: asked, headers: [] }))) ?? {};
}

const methods = ["GET", "PUT", "POST", "DELETE", "HEAD"];
const rulesMax = 100;
/** Header names as in HTTP, and the wildcard. */
const headerName = /^[\w!#$%&'*+.^`|~-]+$/;

/** Throws MalformedXML or InvalidRequest. */
export function checkCors(root: XmlElement): void {
  const rules = root.all("CORSRule");
  if (rules.length === 0 || rules.length > rulesMax) throw malformed();
  const invalid = (message: string): Error => new S3Error("InvalidRequest", { message });
  for (const rule of rules) {
    const texts = (name: string): string[] => rule.all(name).map(({ text }) => text);
    if (texts("AllowedOrigin").length === 0 || texts("AllowedMethod").length === 0) throw malformed();
    for (const name of texts("AllowedMethod"))
      if (!methods.includes(name))
        throw invalid(`Found unsupported HTTP method in CORS config. Unsupported method is ${name}`);
    for (const name of ["AllowedOrigin", "AllowedHeader"])
      for (const text of texts(name))
        if (text.split("*").length > 2) throw invalid(`${name} "${text}" can not have more than one wildcard.`);
    for (const name of ["AllowedHeader", "ExposeHeader"])
      for (const text of texts(name))
        if (!headerName.test(text)) throw invalid(`${name} "${text}" contains invalid character.`);
    if (!/^-?[0-9]{0,10}$/.test(rule.findText("MaxAgeSeconds") ?? "")) throw malformed();
  }
}

async function findAllowed(bucket: Bucket, wanted: CorsRequest): Promise<Headers | undefined> {
  const { cors } = (await bucket.config()).documents;
  if (cors === undefined) return undefined;
  for (const rule of parseXml(Buffer.from(cors), "CORSConfiguration").all("CORSRule")) {
    const answer = allowedBy(rule, wanted);
    if (answer !== undefined) return answer;
  }
  return undefined;
}

/** The first rule that matches decides. */
function allowedBy(rule: XmlElement, { origin, method, headers }: CorsRequest): Headers | undefined {
  const texts = (name: string): string[] => rule.all(name).map(({ text }) => text);
  const pattern = texts("AllowedOrigin").find((allowed) => matches(allowed, origin));
  const allowedMethods = texts("AllowedMethod");
  if (pattern === undefined || !allowedMethods.includes(method)) return undefined;
  const patterns = texts("AllowedHeader").map((name) => name.toLowerCase());
  if (!headers.every((name) => patterns.some((allowed) => matches(allowed, name)))) return undefined;
  const [exposed, maxAge] = [texts("ExposeHeader"), rule.findText("MaxAgeSeconds")];
  return {
    "access-control-allow-origin": pattern === "*" ? "*" : origin,
    "access-control-allow-methods": allowedMethods.join(", "),
    ...(headers.length === 0 ? {} : { "access-control-allow-headers": headers.join(", ") }),
    ...(exposed.length === 0 ? {} : { "access-control-expose-headers": exposed.join(", ") }),
    ...(maxAge === undefined ? {} : { "access-control-max-age": maxAge }),
    ...(pattern === "*" ? {} : { "access-control-allow-credentials": "true" }),
    vary: "Origin, Access-Control-Request-Headers, Access-Control-Request-Method",
  };
}
