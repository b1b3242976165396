// Finds out whether a bucket is public, and applies the public-access block, which overrides every
// grant to everybody.
import { malformed, parseXml, type XmlElement } from "../http/xml-in.ts";
import { formatXml } from "../http/xml-out.ts";
import { readPolicy } from "./bucket-policy.ts";
import { isRecord } from "./policy-condition.ts";

/** True if a policy allows something to everybody, from any address. */
export function isPublicPolicy(policy: string): boolean {
  return readPolicy(policy).statements.some(
    ({ isAllow, isForAll, condition }) => isAllow && isForAll && !isConfined(condition),
  );
}

/**
 * As on AWS, a condition makes a statement not public if it fixes the sender. A value that every
 * sender can choose does not.
 */
const confining: Readonly<Record<string, readonly string[]>> = {
  IpAddress: ["aws:sourceip"],
  StringEquals: ["aws:principalaccount", "aws:principalarn", "aws:userid"],
};
/** An address range with fewer fixed bits than this counts as everybody. */
const fixedBitsMin = { v4: 8, v6: 32 } as const;

function isConfined(condition: unknown): boolean {
  if (!isRecord(condition)) return false;
  return Object.entries(condition).some(
    ([operator, facts]) =>
      isRecord(facts) &&
      Object.entries(facts).some(
        ([name, value]) =>
          confining[operator]?.includes(name.toLowerCase()) === true && [value].flat().every((each) => isFixed(each)),
      ),
  );
}

function isFixed(value: unknown): boolean {
  const [network = "", bits] = String(value).split("/");
  if (bits === undefined) return !/[*?]/.test(network);
  return Number(bits) >= (network.includes(":") ? fixedBitsMin.v6 : fixedBitsMin.v4);
}

const blockNames = ["BlockPublicAcls", "IgnorePublicAcls", "BlockPublicPolicy", "RestrictPublicBuckets"] as const;
type BlockName = (typeof blockNames)[number];

/** Returns all four settings, as responses show them; a missing one is false. Throws MalformedXML. */
export function blockAsXml(root: XmlElement): string {
  const words = blockNames.map((name) => [name, (root.findText(name) ?? "false").toLowerCase()] as const);
  if (words.some(([, word]) => word !== "true" && word !== "false")) throw malformed();
  return formatXml("PublicAccessBlockConfiguration", Object.fromEntries(words));
}

export function isBlocked(document: string | undefined, name: BlockName): boolean {
  if (document === undefined) return false;
  return parseXml(Buffer.from(document), "PublicAccessBlockConfiguration").findText(name)?.toLowerCase() === "true";
}
