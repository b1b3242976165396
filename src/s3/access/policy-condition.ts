// Conditions of a policy: judged by what a request carries, and by the tags of the object.
import { BlockList, isIP } from "node:net";
import { isHoldfastError } from "../../index.ts";
import type { Bucket } from "../../objects/index.ts";
import type { S3Request } from "../http/request.ts";

/** What a condition asks for. Undefined: it is not there. Null: it is not known here what that is. */
export type FindFact = (name: string) => Promise<string | undefined | null>;

/** Of a request for a key, or for a bucket. */
export function factsOf(request: S3Request, bucket: Bucket, key: string | undefined): FindFact {
  const { headers, query, incoming } = request;
  const header = (name: string): string | undefined => headers[name]?.toString();
  return async (name) => {
    const lower = name.toLowerCase();
    const [, kind = "", tag = ""] = /^s3:(existing|request)objecttag\/(.+)$/i.exec(name) ?? [];
    if (kind.toLowerCase() === "request")
      return new URLSearchParams(header("x-amz-tagging") ?? "").get(tag) ?? undefined;
    if (kind !== "") return (await existingTags(bucket, key, query.get("versionId")))[tag];
    if (lower === "s3:x-amz-copy-source") return header("x-amz-copy-source")?.replace(/^\//, "");
    if (lower.startsWith("s3:x-amz-")) return header(lower.slice("s3:".length));
    switch (lower) {
      case "s3:prefix":
      case "s3:delimiter":
      case "s3:max-keys":
        return query.get(lower.slice("s3:".length));
      case "s3:versionid":
        return query.get("versionId");
      case "aws:referer":
        return header("referer");
      case "aws:useragent":
        return header("user-agent");
      case "aws:securetransport":
        return String("encrypted" in incoming.socket);
      case "aws:sourceip":
        return incoming.socket.remoteAddress?.replace(/^::ffff:/, "");
      default:
        return null;
    }
  };
}

async function existingTags(
  bucket: Bucket,
  key: string | undefined,
  versionId: string | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (key === undefined) return {};
  try {
    return await bucket.tags(key, { versionId });
  } catch (error) {
    // An object that is not there, or a delete marker, has no tags.
    if (isHoldfastError(error, "NO_SUCH_KEY") || isHoldfastError(error, "NO_SUCH_VERSION")) return {};
    throw error;
  }
}

type Compare = (fact: string, value: string) => boolean;

/** By operator; one that begins with Not, or has it inside, holds if none of the values does. */
const operators: Readonly<Record<string, Compare>> = {
  StringEquals: (fact, value) => fact === value,
  StringEqualsIgnoreCase: (fact, value) => fact.toLowerCase() === value.toLowerCase(),
  StringLike: (fact, value) => matches(value, fact),
  Bool: (fact, value) => fact.toLowerCase() === value.toLowerCase(),
  IpAddress: isWithin,
  NumericEquals: (fact, value) => Number(fact) === Number(value),
  NumericLessThan: (fact, value) => Number(fact) < Number(value),
  NumericLessThanEquals: (fact, value) => Number(fact) <= Number(value),
  NumericGreaterThan: (fact, value) => Number(fact) > Number(value),
  NumericGreaterThanEquals: (fact, value) => Number(fact) >= Number(value),
};

function isWithin(address: string, range: string): boolean {
  const [network = "", bits] = range.split("/");
  const kind = isIP(network);
  const length = bits === undefined ? (kind === 4 ? 32 : 128) : Number(bits);
  if (kind === 0 || isIP(address) !== kind || !(length >= 0 && length <= (kind === 4 ? 32 : 128))) return false;
  const list = new BlockList();
  const family = kind === 4 ? "ipv4" : "ipv6";
  list.addSubnet(network, length, family);
  return list.check(address, family);
}

/** Whether all that it asks for holds. Undefined where that cannot be judged. */
export async function judgeCondition(condition: unknown, find: FindFact): Promise<boolean | undefined> {
  if (condition === undefined) return true;
  if (typeof condition !== "object" || condition === null) return undefined;
  let isKnown = true;
  for (const [operator, facts] of Object.entries(condition))
    for (const [name, value] of Object.entries((facts ?? {}) as object)) {
      const holds = judgeOne(operator, [value].flat() as unknown[], await find(name));
      if (holds === false) return false;
      if (holds === undefined) isKnown = false;
    }
  return isKnown ? true : undefined;
}

function judgeOne(operator: string, given: readonly unknown[], fact: string | undefined | null): boolean | undefined {
  const values = given.map(String);
  if (fact === null) return undefined;
  if (operator === "Null") return values.some((value) => (value.toLowerCase() === "true") === (fact === undefined));
  const isOptional = operator.endsWith("IfExists");
  const name = isOptional ? operator.slice(0, -"IfExists".length) : operator;
  const isNegated = /^(Not|String(?=Not)|Numeric(?=Not))/.test(name);
  const compare = operators[isNegated ? name.replace("Not", "") : name];
  if (compare === undefined) return undefined;
  if (fact === undefined) return isOptional || isNegated;
  return values.some((value) => compare(fact, value)) !== isNegated;
}

/** `*` for any characters, `?` for one; in time that grows with both lengths only. */
export function matches(pattern: string, text: string): boolean {
  let [at, star, mark] = [0, -1, 0];
  for (let index = 0; index < text.length;) {
    if (pattern[at] === "*") [star, mark, at] = [at, index, at + 1];
    else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[index]))
      [at, index] = [at + 1, index + 1];
    else if (star >= 0) [at, mark, index] = [star + 1, mark + 1, mark + 1];
    else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}
