// A bucket policy: parses its statements, finds out whether each can be evaluated, and evaluates a
// request.
import { existsFor, matchesAction } from "./actions.ts";
import { findConditionFault, isRecord, judgeCondition } from "./policy-condition.ts";
import type { FindFact } from "./policy-facts.ts";
import { matches } from "./wildcard.ts";

/** The decision of a policy on one action of a request. */
export type Judgement = "allowed" | "refused" | undefined;

export interface Judged {
  /** The AWS name without the service: "GetObject". */
  readonly action: string;
  readonly resource: string;
  /** Undefined for an unsigned request. */
  readonly account: string | undefined;
  readonly find: FindFact;
}

/** Undefined if the statement cannot be evaluated. */
type Verdict = boolean | undefined;

interface Statement {
  readonly isAllow: boolean;
  readonly isForAll: boolean;
  readonly actions: readonly string[];
  readonly condition: unknown;
  readonly isOddCondition: boolean;
  /** Reasons why the statement cannot be evaluated, if any. */
  readonly faults: readonly string[];
  readonly concerns: (judged: Judged) => Verdict;
}

export interface BucketPolicy {
  readonly statements: readonly Statement[];
  /** Reasons why the policy cannot be evaluated, in the words of AWS if it has any. */
  readonly faults: readonly string[];
}

const known = new Map<string, BucketPolicy>();
const knownMax = 100;

/** Never throws: a policy that an older build stored is evaluated as far as possible. */
export function readPolicy(text: string): BucketPolicy {
  const found = known.get(text);
  if (found !== undefined) return found;
  const policy = parse(text);
  if (known.size >= knownMax) known.clear();
  known.set(text, policy);
  return policy;
}

/**
 * A denial overrides a permission. A statement that cannot be evaluated never permits anything, and
 * always denies if it may apply. With `byName`, a pattern such as `s3:*` allows nothing.
 */
export async function judge(
  { statements }: BucketPolicy,
  judged: Judged,
  { byName = false }: { readonly byName?: boolean } = {},
): Promise<Judgement> {
  let isAllowed = false;
  for (const statement of statements) {
    const concerns = statement.concerns(judged);
    if (concerns === false) continue;
    const holds = statement.isOddCondition ? undefined : await judgeCondition(statement.condition, judged.find);
    if (holds === false) continue;
    if (!statement.isAllow) return "refused";
    const isNamed = !byName || statement.actions.some((pattern) => isNameOf(pattern, judged.action));
    if (concerns === true && holds === true && isNamed) isAllowed = true;
  }
  return isAllowed ? "allowed" : undefined;
}

function isNameOf(pattern: string, action: string): boolean {
  return pattern.toLowerCase() === `s3:${action.toLowerCase()}`;
}

/** Stands for a policy that cannot be read: one statement that denies everything. */
const unreadable = (fault: string): BucketPolicy => ({
  statements: [
    {
      isAllow: false,
      isForAll: true,
      actions: [],
      condition: undefined,
      isOddCondition: false,
      faults: [fault],
      concerns: () => undefined,
    },
  ],
  faults: [fault],
});

const notJson = "Policies must be valid JSON and the first byte must be '{'";

function parse(text: string): BucketPolicy {
  let policy: unknown;
  try {
    policy = JSON.parse(text);
  } catch {
    return unreadable(notJson);
  }
  if (!isRecord(policy)) return unreadable(notJson);
  if (policy.Statement === undefined) return unreadable("Missing required field Statement");
  const list: readonly unknown[] = Array.isArray(policy.Statement) ? policy.Statement : [policy.Statement];
  if (list.length === 0) return unreadable("Could not parse the policy: Statement is empty!");
  const { Version = "2008-10-17" } = policy;
  const odd = Object.keys(policy).find((name) => !["Version", "Id", "Statement"].includes(name));
  if (odd !== undefined) return unreadable(`Unknown field ${odd}`);
  if (Version !== "2008-10-17" && Version !== "2012-10-17")
    return unreadable("The policy must contain a valid version string");
  const statements = list.map((each) => parseStatement(each, { hasVariables: Version === "2012-10-17" }));
  return { statements, faults: statements.flatMap(({ faults }) => faults) };
}

const parts = ["Principal", "Action", "Resource"] as const;
const elements = new Set(["Sid", "Effect", "Condition", ...parts.flatMap((name) => [name, `Not${name}`])]);

function parseStatement(value: unknown, { hasVariables }: { readonly hasVariables: boolean }): Statement {
  const statement = isRecord(value) ? value : {};
  const faults: string[] = [];
  const mustNot = (fault: string | undefined): void => void (fault === undefined || faults.push(fault));
  if (!isRecord(value)) mustNot("Could not parse the policy");
  mustNot(unknownElement(statement));
  if (statement.Effect !== "Allow" && statement.Effect !== "Deny")
    mustNot(`Invalid effect: ${String(statement.Effect)}. It is Allow or Deny.`);
  for (const name of parts) {
    const count = [name, `Not${name}`].filter((each) => statement[each] !== undefined).length;
    if (count === 0) mustNot(`Missing required field ${name}`);
    if (count === 2) mustNot(`Invalid policy syntax: ${name} and Not${name}`);
  }
  const isAllow = statement.Effect === "Allow";
  if (isAllow && statement.NotPrincipal !== undefined) mustNot("Invalid principal in policy: Allow with NotPrincipal");
  const isOddForm = faults.length > 0;
  const who = principalsOf(statement.Principal ?? statement.NotPrincipal, mustNot);
  const actions = textsOf(statement.Action ?? statement.NotAction, "Policy has invalid action", mustNot);
  const resources = textsOf(statement.Resource ?? statement.NotResource, "Policy has invalid resource", mustNot);
  const oddAction = actions.find((action) => !existsFor("objects", action) && !existsFor("buckets", action));
  if (oddAction !== undefined) mustNot(`Policy has invalid action: ${oddAction}`);
  const isOdd = (resource: string): boolean =>
    pathOf(resource) === undefined || (hasVariables && resource.includes("${"));
  const oddResource = resources.find(isOdd);
  if (oddResource !== undefined) mustNot(`Policy has invalid resource: ${oddResource}`);
  const conditionFault =
    hasVariables && JSON.stringify(statement.Condition ?? {}).includes("${")
      ? "Policy variables in Conditions are not supported"
      : findConditionFault(statement.Condition);
  mustNot(conditionFault);
  const part = (isNot: boolean, verdict: Verdict): Verdict => (verdict === undefined ? undefined : verdict !== isNot);
  return {
    isAllow,
    isForAll: who.isAll || statement.NotPrincipal !== undefined,
    actions: statement.Action === undefined ? [] : actions,
    condition: statement.Condition,
    isOddCondition: conditionFault !== undefined,
    faults,
    concerns: ({ action, resource, account }) =>
      allOf(
        isOddForm ? undefined : true,
        part(statement.NotPrincipal !== undefined, who.includes(account)),
        part(
          statement.NotAction !== undefined,
          anyOf(
            actions.some((pattern) => matchesAction(pattern, action)),
            oddAction !== undefined || actions.length === 0,
          ),
        ),
        part(
          statement.NotResource !== undefined,
          anyOf(
            resources.some((pattern) => !isOdd(pattern) && matches(pattern, resource)),
            oddResource !== undefined || resources.length === 0,
          ),
        ),
      ),
  };
}

function allOf(...verdicts: readonly Verdict[]): Verdict {
  if (verdicts.includes(false)) return false;
  return verdicts.includes(undefined) ? undefined : true;
}

/** One match is enough. Without one, an unreadable pattern may match. */
function anyOf(isMatch: boolean, hasOdd: boolean): Verdict {
  return isMatch ? true : hasOdd ? undefined : false;
}

function unknownElement(statement: Readonly<Record<string, unknown>>): string | undefined {
  const name = Object.keys(statement).find((each) => !elements.has(each));
  return name === undefined ? undefined : `Unknown field ${name}`;
}

/** Accepts a text, or a list of at least one text. */
function textsOf(value: unknown, fault: string, mustNot: (fault: string) => void): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts = list.filter((each) => typeof each === "string" && each !== "") as string[];
  if (list.length === 0 || texts.length < list.length) mustNot(fault);
  return texts;
}

/** Returns the path after the service name: `bucket` or `bucket/key`. */
export function pathOf(resource: string): string | undefined {
  return /^arn:aws:s3:::(.*)$/s.exec(resource)?.[1];
}

interface Principals {
  readonly isAll: boolean;
  readonly includes: (account: string | undefined) => Verdict;
}

const accountName = /^[\w.@-]{1,64}$/;
/** Every user of an account counts as the account: it decides who gets its key pairs. */
const accountArn = /^arn:aws:iam::([\w.@-]{1,64}):(?:root|user\/.+|role\/.+)$/;

/** Accepts everybody, or accounts: by name, as `arn:aws:iam::shop:root`, or as canonical users. */
function principalsOf(principal: unknown, mustNot: (fault: string) => void): Principals {
  const everybody: Principals = { isAll: true, includes: () => true };
  if (principal === "*") return everybody;
  const fault = "Invalid principal in policy";
  const accounts = new Set<string>();
  let isAll = false;
  let isOdd = !isRecord(principal) || Object.keys(principal).length === 0;
  if (isOdd) mustNot(fault);
  for (const [kind, value] of Object.entries(isRecord(principal) ? principal : {}))
    for (const name of textsOf(value, fault, mustNot)) {
      const account = kind === "AWS" || kind === "CanonicalUser" ? findAccount(kind, name) : undefined;
      if (kind === "AWS" && name === "*") isAll = true;
      else if (account !== undefined) accounts.add(account);
      else {
        isOdd = true;
        mustNot(`${fault}: ${JSON.stringify({ [kind]: name })}`);
      }
    }
  if (isAll && !isOdd) return everybody;
  return { isAll, includes: (account) => anyOf(isAll || (account !== undefined && accounts.has(account)), isOdd) };
}

function findAccount(kind: "AWS" | "CanonicalUser", name: string): string | undefined {
  if (accountName.test(name)) return name;
  return kind === "AWS" ? accountArn.exec(name)?.[1] : undefined;
}
