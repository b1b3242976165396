// The signer that a request claims, in the Authorization header or in the query of a presigned URL.
import { S3Error, type S3ErrorCode } from "../http/s3-error.ts";
import type { SignedRequest } from "./canonical-request.ts";
import type { CredentialScope } from "./signing-key.ts";

export const algorithm = "AWS4-HMAC-SHA256";

export interface Authorization {
  readonly accessKeyId: string;
  readonly scope: CredentialScope;
  /** In lower case, in the order signed. */
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** The time in the signed form: 20260102T030405Z. */
  readonly date: string;
  readonly atMs: number;
  /** How long a presigned URL is valid. */
  readonly expiresMs?: number;
}

const presignedSecondsMax = 604_800;

/** Returns undefined for a request without a version 4 signature. */
export function findAuthorization(request: SignedRequest): Authorization | undefined {
  // An empty header counts as absent.
  const header = request.headers.authorization || undefined;
  const parameters = new Map(request.target.query);
  const isPresigned = parameters.has("X-Amz-Algorithm") || parameters.has("X-Amz-Signature");
  if (header !== undefined && isPresigned)
    throw new S3Error("InvalidArgument", {
      message:
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, Signature query string parameter or the Authorization header should be specified",
      details: { ArgumentName: "Authorization" },
    });
  if (header !== undefined) return fromHeader(header, request);
  if (isPresigned) return fromQuery(parameters);
  return undefined;
}

function fromHeader(header: string, { headers }: SignedRequest): Authorization {
  if (!header.startsWith("AWS"))
    throw new S3Error("InvalidArgument", {
      message: "Unsupported Authorization Type",
      details: { ArgumentName: "Authorization" },
    });
  if (!header.startsWith(`${algorithm} `) && header !== algorithm) throw unsupported();
  const parts = new Map(
    header
      .slice(algorithm.length)
      .split(",")
      .map((part) => part.trim())
      .map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)] as const),
  );
  const malformed = (why: string): Error => malformedBy("AuthorizationHeaderMalformed", why);
  const [credential, signedHeaders, signature] = ["Credential", "SignedHeaders", "Signature"].map((name) => {
    const value = parts.get(name);
    if (value === undefined || value === "") throw malformed(`the header lacks the part ${name}.`);
    return value;
  }) as [string, string, string];
  const date = headers["x-amz-date"] ?? headers.date;
  const at = typeof date === "string" ? findDate(date) : undefined;
  if (at === undefined) {
    const message = "AWS authentication requires a valid Date or x-amz-date header";
    throw new S3Error("AccessDenied", { message });
  }
  return {
    ...checkCredential(credential, malformed),
    signedHeaders: checkSignedHeaders(signedHeaders, malformed),
    signature,
    ...at,
  };
}

function fromQuery(parameters: ReadonlyMap<string, string>): Authorization {
  const malformed = (why: string): Error => malformedBy("AuthorizationQueryParametersError", why);
  const get = (name: string): string => {
    const value = parameters.get(name);
    if (value !== undefined && value !== "") return value;
    const message =
      "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.";
    throw new S3Error("AuthorizationQueryParametersError", { message });
  };
  if (get("X-Amz-Algorithm") !== algorithm) throw malformed(`X-Amz-Algorithm only supports "${algorithm}"`);
  const at = findDate(get("X-Amz-Date"));
  if (at === undefined || at.date !== get("X-Amz-Date"))
    throw malformed("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"");
  const expires = get("X-Amz-Expires");
  if (!/^-?[0-9]+$/.test(expires)) throw malformed("X-Amz-Expires should be a number");
  if (Number(expires) < 0) throw malformed("X-Amz-Expires must be non-negative");
  if (Number(expires) > presignedSecondsMax)
    throw malformed(
      "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires must be less than 604800 seconds",
    );
  return {
    ...checkCredential(get("X-Amz-Credential"), malformed),
    signedHeaders: checkSignedHeaders(get("X-Amz-SignedHeaders"), malformed),
    signature: get("X-Amz-Signature"),
    ...at,
    expiresMs: Number(expires) * 1000,
  };
}

function checkCredential(
  credential: string,
  malformed: (why: string) => Error,
): Pick<Authorization, "accessKeyId" | "scope"> {
  const parts = credential.split("/");
  const [day, region, service, end] = parts.slice(-4);
  const accessKeyId = parts.slice(0, -4).join("/");
  if (accessKeyId === "" || day === undefined || region === undefined || service === undefined)
    throw malformed('the Credential is mal-formed; expecting "<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request".');
  if (service !== "s3") throw malformed(`incorrect service "${service}". This endpoint belongs to "s3".`);
  if (end !== "aws4_request") throw malformed(`incorrect terminal "${end ?? ""}". This endpoint uses "aws4_request".`);
  return { accessKeyId, scope: { day, region } };
}

function checkSignedHeaders(text: string, malformed: (why: string) => Error): string[] {
  const names = text.toLowerCase().split(";");
  if (!names.includes("host")) throw malformed("the header host must be signed.");
  return names;
}

/** Parses a time in the signed form, or in that of the Date header. */
function findDate(text: string): { readonly date: string; readonly atMs: number } | undefined {
  const match = /^([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z$/.exec(text);
  const atMs =
    match === null
      ? Date.parse(text)
      : Date.parse(`${match[1]}-${match[2]}-${match[3]}T${match[4]}:${match[5]}:${match[6]}Z`);
  if (Number.isNaN(atMs)) return undefined;
  if (match !== null) return { date: text, atMs };
  const date = `${new Date(atMs).toISOString().slice(0, 19).replace(/[-:]/g, "")}Z`;
  return { date, atMs };
}

/** The signing key must be that of the day of the request. */
export function checkDay({ scope: { day }, date, expiresMs }: Authorization): void {
  if (day === date.slice(0, 8)) return;
  const code = expiresMs === undefined ? "AuthorizationHeaderMalformed" : "AuthorizationQueryParametersError";
  throw malformedBy(
    code,
    `invalid credential date "${day}". This date is not the same as X-Amz-Date: "${date.slice(0, 8)}".`,
  );
}

function malformedBy(code: S3ErrorCode, why: string): Error {
  const message = code === "AuthorizationHeaderMalformed" ? `The authorization header is malformed; ${why}` : why;
  return new S3Error(code, { message });
}

function unsupported(): Error {
  const message = `The authorization mechanism you have provided is not supported. Please use ${algorithm}.`;
  return new S3Error("InvalidRequest", { message });
}
