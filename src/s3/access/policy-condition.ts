// The conditions of a policy: which operators exist, and whether a condition holds.
import { BlockList, isIP } from "node:net";
import { isFact, type FindFact } from "./policy-facts.ts";
import { matches } from "./wildcard.ts";

interface Operator {
  readonly holds: (fact: string, value: string) => boolean;
  /** True if a condition may have this value. */
  readonly isValue: (value: string) => boolean;
}

const anyValue = (): boolean => true;
const text = (holds: Operator["holds"]): Operator => ({ holds, isValue: anyValue });
const number = (holds: (fact: number, value: number) => boolean): Operator => ({
  holds: (fact, value) => holds(Number(fact), Number(value)),
  isValue: (value) => value.trim() !== "" && Number.isFinite(Number(value)),
});
const date = (holds: (fact: number, value: number) => boolean): Operator => ({
  holds: (fact, value) => holds(timeOf(fact), timeOf(value)),
  isValue: (value) => !Number.isNaN(timeOf(value)),
});

const orders = {
  LessThan: (one: number, other: number) => one < other,
  LessThanEquals: (one: number, other: number) => one <= other,
  GreaterThan: (one: number, other: number) => one > other,
  GreaterThanEquals: (one: number, other: number) => one >= other,
};
const ordered = (kind: string, make: typeof number): Record<string, Operator> =>
  Object.fromEntries(Object.entries(orders).map(([name, holds]) => [`${kind}${name}`, make(holds)]));

const equalNumbers = number((fact, value) => fact === value);
const equalDates = date((fact, value) => fact === value);
const equalTexts = text((fact, value) => fact === value);
const alikeTexts = text((fact, value) => fact.toLowerCase() === value.toLowerCase());
const like = text((fact, value) => matches(value, fact));
const arn: Operator = { holds: isArnLike, isValue: (value) => arnParts(value).length === arnPartsMax };
const within: Operator = { holds: isWithin, isValue: isRange };

const arnPartsMax = 6;

/** The last part may contain colons. */
function arnParts(text: string): readonly string[] {
  const parts = text.split(":");
  return parts.length < arnPartsMax
    ? parts
    : [...parts.slice(0, arnPartsMax - 1), parts.slice(arnPartsMax - 1).join(":")];
}

/** A wildcard matches only within its part. */
function isArnLike(fact: string, value: string): boolean {
  const [found, patterns] = [arnParts(fact), arnParts(value)];
  if (found.length !== patterns.length) return false;
  return patterns.every((pattern, index) => matches(pattern, found[index] ?? ""));
}

const operators: Readonly<Record<string, Operator>> = {
  StringEquals: equalTexts,
  StringEqualsIgnoreCase: alikeTexts,
  StringLike: like,
  Bool: { holds: alikeTexts.holds, isValue: isBool },
  ArnEquals: arn,
  ArnLike: arn,
  IpAddress: within,
  NumericEquals: equalNumbers,
  ...ordered("Numeric", number),
  DateEquals: equalDates,
  ...ordered("Date", date),
};

/** Negated operators: the condition holds if none of the values matches. */
const negated: Readonly<Record<string, Operator>> = {
  StringNotEquals: equalTexts,
  StringNotEqualsIgnoreCase: alikeTexts,
  StringNotLike: like,
  ArnNotEquals: arn,
  ArnNotLike: arn,
  NotIpAddress: within,
  NumericNotEquals: equalNumbers,
  DateNotEquals: equalDates,
};

function isBool(value: string): boolean {
  return ["true", "false"].includes(value.toLowerCase());
}

/** Parses ISO 8601, or seconds since 1970. */
function timeOf(value: string): number {
  return /^[0-9]+(\.[0-9]+)?$/.test(value) ? Number(value) * 1000 : Date.parse(value);
}

function isRange(range: string): boolean {
  const [network = "", bits] = range.split("/");
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(network)] ?? -1;
  return bits === undefined ? most >= 0 : /^[0-9]{1,3}$/.test(bits) && Number(bits) <= most;
}

function isWithin(address: string, range: string): boolean {
  const [network = "", bits] = range.split("/");
  const kind = isIP(network);
  if (!isRange(range) || isIP(address) !== kind) return false;
  const family = kind === 4 ? "ipv4" : "ipv6";
  const list = new BlockList();
  list.addSubnet(network, bits === undefined ? (kind === 4 ? 32 : 128) : Number(bits), family);
  return list.check(address, family);
}

interface ConditionOperator {
  readonly set: "ForAllValues" | "ForAnyValue" | undefined;
  readonly isNull: boolean;
  readonly isNegated: boolean;
  readonly isOptional: boolean;
  readonly operator: Operator;
}

const isNull: Operator = { holds: anyValue, isValue: isBool };

/** Undefined if the name is not an operator. */
function findOperator(name: string): ConditionOperator | undefined {
  const [, set, bare = "", ifExists] = /^(?:(ForAllValues|ForAnyValue):)?(.*?)(IfExists)?$/.exec(name) ?? [];
  const get = (from: typeof operators): Operator | undefined => (Object.hasOwn(from, bare) ? from[bare] : undefined);
  const operator = name === "Null" ? isNull : (get(operators) ?? get(negated));
  if (operator === undefined) return undefined;
  return {
    set: set as ConditionOperator["set"],
    isNull: name === "Null",
    isNegated: Object.hasOwn(negated, bare),
    isOptional: ifExists !== undefined,
    operator,
  };
}

/** Returns the reason why a condition cannot be evaluated, or undefined. */
export function findConditionFault(condition: unknown): string | undefined {
  if (condition === undefined) return undefined;
  if (!isRecord(condition)) return "Conditions must be an object";
  for (const [name, facts] of Object.entries(condition)) {
    const asked = findOperator(name);
    if (asked === undefined) return `Invalid Condition type : ${name}`;
    if (!isRecord(facts)) return `Invalid Condition type : ${name} names no keys`;
    for (const [fact, value] of Object.entries(facts)) {
      if (!isFact(fact)) return `Policy has an invalid condition key: ${fact}`;
      const values = [value].flat();
      const bad = values.find((each) => !isScalar(each) || !asked.operator.isValue(String(each)));
      if (bad !== undefined || values.length === 0)
        return `Invalid value in Conditions: ${name} of ${fact} with ${JSON.stringify(value)}`;
    }
  }
  return undefined;
}

/** True if the whole condition holds. Undefined if it cannot be evaluated. */
export async function judgeCondition(condition: unknown, find: FindFact): Promise<boolean | undefined> {
  if (condition === undefined) return true;
  if (!isRecord(condition)) return undefined;
  let isKnown = true;
  for (const [operator, facts] of Object.entries(condition))
    for (const [name, value] of Object.entries(facts ?? {})) {
      const holds = judgeOne(operator, [value].flat() as unknown[], await find(name));
      if (holds === false) return false;
      if (holds === undefined) isKnown = false;
    }
  return isKnown ? true : undefined;
}

function judgeOne(name: string, given: readonly unknown[], fact: Awaited<ReturnType<FindFact>>): boolean | undefined {
  const asked = findOperator(name);
  if (fact === null || asked === undefined) return undefined;
  const values = given.map(String);
  const found = fact === undefined ? [] : [fact].flat();
  if (asked.isNull) return values.some((value) => (value.toLowerCase() === "true") === (found.length === 0));
  const { set, isNegated, isOptional, operator } = asked;
  const holds = (each: string): boolean => values.some((value) => operator.holds(each, value)) !== isNegated;
  if (set === "ForAllValues") return found.every(holds);
  if (found.length === 0) return isOptional || (isNegated && set === undefined);
  return found.some(holds);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isScalar(value: unknown): boolean {
  return ["string", "number", "boolean"].includes(typeof value);
}
