// The policy of a form upload: a document that the server of a web page signed. It states until
// when, and with which fields, a browser may upload.
import { createHmac } from "node:crypto";
import { S3Error } from "../http/s3-error.ts";
import { isSame, sign, signingKey } from "../signature/signing-key.ts";
import type { S3Credentials } from "./principal.ts";

/** Names in lower case. */
type Fields = ReadonlyMap<string, string>;

export interface SizeLimits {
  readonly min: number;
  readonly max: number;
}

const postBytesMax = 5 * 1024 ** 3;
export const anySize: SizeLimits = { min: 0, max: postBytesMax };

/** True if the form is signed with signature version 2. */
export function isOldForm(fields: Fields): boolean {
  return fields.has("awsaccesskeyid") && !fields.has("x-amz-algorithm");
}

/** Throws InvalidArgument for a missing field, InvalidAccessKeyId or SignatureDoesNotMatch. */
export function signerOf(
  fields: Fields,
  region: string,
  findCredentials: (accessKeyId: string) => S3Credentials | undefined,
): S3Credentials {
  const { accessKeyId, signature, signed } = isOldForm(fields) ? oldSignature(fields) : newSignature(fields, region);
  const credentials = findCredentials(accessKeyId);
  if (credentials === undefined) throw new S3Error("InvalidAccessKeyId", { details: { AWSAccessKeyId: accessKeyId } });
  if (!isSame(signed(credentials.secretAccessKey), signature)) throw new S3Error("SignatureDoesNotMatch");
  return credentials;
}

interface FormSignature {
  readonly accessKeyId: string;
  readonly signature: string;
  readonly signed: (secret: string) => string;
}

function newSignature(fields: Fields, region: string): FormSignature {
  const credential = getField(fields, "x-amz-credential");
  const [accessKeyId = "", day = "", given = "", service, end] = credential.split("/");
  const isRight =
    fields.get("x-amz-algorithm") === "AWS4-HMAC-SHA256" &&
    /^[0-9]{8}$/.test(day) &&
    given === region &&
    service === "s3" &&
    end === "aws4_request";
  if (!isRight)
    throw new S3Error("InvalidArgument", {
      message: "The X-Amz-Credential or X-Amz-Algorithm of the form is not valid.",
      details: { ArgumentName: "X-Amz-Credential", ArgumentValue: credential },
    });
  const policy = getField(fields, "policy");
  return {
    accessKeyId,
    signature: getField(fields, "x-amz-signature"),
    signed: (secret) => sign(signingKey(secret, { day, region }), policy),
  };
}

/**
 * Checks a signature of version 2, for pages that were written before version 4. Besides presigned
 * URLs, only forms may still use version 2.
 */
function oldSignature(fields: Fields): FormSignature {
  const policy = getField(fields, "policy");
  return {
    accessKeyId: getField(fields, "awsaccesskeyid"),
    signature: getField(fields, "signature"),
    signed: (secret) => createHmac("sha1", secret).update(policy).digest("base64"),
  };
}

function getField(fields: Fields, name: string): string {
  const value = fields.get(name);
  if (value !== undefined) return value;
  throw new S3Error("InvalidArgument", {
    message: `Bucket POST must contain a field named '${name}'.  If it is specified, please check the order of the fields.`,
    details: { ArgumentName: name, ArgumentValue: "" },
  });
}

/** Fields of the signature, which do not describe the upload. */
const free = new Set(["policy", "signature", "awsaccesskeyid", "x-amz-signature", "file"]);

/**
 * Every field must be covered by a condition, and every condition must hold. Throws AccessDenied or
 * InvalidPolicyDocument.
 */
export function judgeForm(fields: Fields, bucket: string, key: string): SizeLimits {
  const { expiration, conditions } = parsePolicy(fields.get("policy") ?? "");
  if (Date.parse(expiration) <= Date.now()) throw denied("Policy expired.");
  const values = new Map([...fields, ["bucket", bucket], ["key", key]]);
  let limits = anySize;
  const covered = new Set<string>();
  for (const condition of conditions)
    for (const { operator, name, value, range } of conditionsOf(condition)) {
      if (range !== undefined) {
        limits = { min: Math.max(limits.min, range.min), max: Math.min(limits.max, range.max) };
        continue;
      }
      const found = values.get(name) ?? "";
      const holds = operator === "eq" ? found === value : found.startsWith(value);
      if (!holds) throw denied(`Policy Condition failed: ["${operator}", "$${name}", "${value}"]`);
      covered.add(name);
    }
  for (const name of values.keys())
    if (!covered.has(name) && !free.has(name) && !name.startsWith("x-ignore-"))
      throw denied(`Extra input fields: ${name}`);
  return limits;
}

interface Policy {
  readonly expiration: string;
  readonly conditions: readonly unknown[];
}

function parsePolicy(text: string): Policy {
  let policy: { readonly expiration?: unknown; readonly conditions?: unknown };
  try {
    policy = JSON.parse(Buffer.from(text, "base64").toString("utf8")) as typeof policy;
  } catch {
    throw invalid("Invalid JSON.");
  }
  const { expiration, conditions } = policy ?? {};
  if (expiration === undefined) throw invalid("Policy missing expiration.");
  // A complete time in UTC, in ISO 8601.
  if (typeof expiration !== "string" || !/^[0-9-]{10}T[0-9:]{8}(\.[0-9]+)?Z$/.test(expiration))
    throw invalid("Invalid 'expiration' value: it is not a time in UTC.");
  if (Number.isNaN(Date.parse(expiration))) throw invalid(`Invalid 'expiration' value: '${expiration}'`);
  if (conditions === undefined) throw invalid("Policy missing conditions.");
  if (!Array.isArray(conditions)) throw invalid("Invalid 'conditions' value: must be a List.");
  return { expiration, conditions };
}

interface Condition {
  readonly operator: "eq" | "starts-with";
  readonly name: string;
  readonly value: string;
  /** Limits of the file size. If present, the other properties are ignored. */
  readonly range?: SizeLimits;
}

/** Accepts `{name: value}`, `[operator, "$name", value]` and `["content-length-range", min, max]`. */
function conditionsOf(condition: unknown): readonly Condition[] {
  if (Array.isArray(condition)) return [listedCondition(condition)];
  if (typeof condition !== "object" || condition === null)
    throw invalid("Invalid Condition: must be a List or an Object.");
  const pairs = Object.entries(condition);
  if (pairs.length === 0) throw invalid("Invalid Simple-Condition: Simple-Conditions must have exactly one property.");
  return pairs.map(([name, value]) => ({ operator: "eq", name: name.toLowerCase(), value: textOf(value) }));
}

function listedCondition(condition: readonly unknown[]): Condition {
  const operator = textOf(condition[0]).toLowerCase();
  if (condition.length !== 3) throw invalid(`Invalid Condition: wrong number of arguments for '${operator}'.`);
  if (operator === "content-length-range") {
    const [min, max] = condition.slice(1).map(Number) as [number, number];
    if (![min, max].every((bound) => Number.isSafeInteger(bound) && bound >= 0))
      throw invalid("Invalid content-length-range: both limits must be whole numbers from 0.");
    return { operator: "eq", name: "", value: "", range: { min, max: Math.min(max, postBytesMax) } };
  }
  const name = textOf(condition[1]);
  if ((operator !== "eq" && operator !== "starts-with") || !name.startsWith("$"))
    throw invalid(`Invalid Condition: unknown operation '${operator}'.`);
  return { operator, name: name.slice(1).toLowerCase(), value: textOf(condition[2]) };
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "number") return String(value);
  throw invalid("Invalid Condition: a value must be a String.");
}

function denied(why: string): Error {
  return new S3Error("AccessDenied", { message: `Invalid according to Policy: ${why}` });
}

function invalid(why: string): Error {
  return new S3Error("InvalidPolicyDocument", { message: `Invalid Policy: ${why}` });
}
