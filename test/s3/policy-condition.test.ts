// Conditions of policies: what holds, what does not, and what cannot be judged.
import { expect, it } from "vitest";
import { judgeCondition } from "../../src/s3/access/policy-condition.ts";

const facts: Readonly<Record<string, string | undefined | null>> = {
  word: "Cat",
  address: "10.1.2.3",
  flag: "true",
  number: "7",
  sender: "arn:aws:iam::shop:root",
  absent: undefined,
  strange: null,
};

const cases: readonly [string, string, unknown, boolean | undefined][] = [
  ["StringEquals", "word", "Cat", true],
  ["StringEquals", "word", ["Dog", "Cat"], true],
  ["StringEquals", "word", "cat", false],
  ["StringEqualsIgnoreCase", "word", "cat", true],
  ["StringNotEquals", "word", ["Dog", "Cat"], false],
  ["StringNotEquals", "word", "Dog", true],
  ["StringNotEquals", "absent", "Dog", true],
  ["StringEquals", "absent", "Dog", false],
  ["StringEqualsIfExists", "absent", "Dog", true],
  ["StringLikeIfExists", "word", "D*", false],
  ["StringLike", "word", "C?t", true],
  ["StringNotLike", "word", "C*", false],
  ["Null", "absent", "true", true],
  ["Null", "word", "true", false],
  ["Null", "word", "false", true],
  ["Bool", "flag", true, true],
  ["Bool", "flag", "false", false],
  ["IpAddress", "address", "10.0.0.0/8", true],
  ["IpAddress", "address", "10.1.2.4", false],
  ["IpAddress", "address", "nonsense/99", false],
  ["NotIpAddress", "address", "10.0.0.0/8", false],
  ["NumericLessThan", "number", 8, true],
  ["NumericGreaterThanEquals", "number", "8", false],
  ["StringEquals", "strange", "x", undefined],
  ["BinaryEquals", "word", "Cat", undefined],
  ["ArnEquals", "sender", "arn:aws:iam::shop:root", true],
  ["ArnLike", "sender", "arn:aws:iam::*:ro?t", true],
  ["ArnLike", "sender", "arn:aws:iam::sh*", false],
  ["ArnNotLike", "sender", "arn:aws:iam::bank:*", true],
  ["ArnLike", "absent", "arn:aws:iam::*:root", false],
];

it.each(cases)("the condition %s of %s with %j is %s", async (operator, name, value, expected) => {
  const judged = await judgeCondition({ [operator]: { [name]: value } }, async (fact) => facts[fact]);
  expect(judged).toBe(expected);
});

it("all conditions must hold, and a failed one outweighs one that cannot be evaluated", async () => {
  const find = async (fact: string): Promise<string | undefined | null> => facts[fact];
  const good = { StringEquals: { word: "Cat" } };
  expect(await judgeCondition({ ...good, Bool: { flag: "true" } }, find)).toBe(true);
  expect(await judgeCondition({ ...good, Bool: { flag: "false" }, BinaryEquals: { word: "x" } }, find)).toBe(false);
  expect(await judgeCondition({ BinaryEquals: { word: "x" }, ...good }, find)).toBe(undefined);
  expect(await judgeCondition(undefined, find)).toBe(true);
});
