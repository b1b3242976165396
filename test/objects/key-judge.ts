// What must hold of a history of one key: it is one that a key could tell which does one thing at a
// time, and each put went by a setting that was in force during its call.
import { expect } from "vitest";
import type { Versioning } from "../../src/objects/model/object.ts";
import { checkLinearizability } from "../../src/testing/history/linearizability.ts";
import type { KeyOperation } from "../../harness/processes/objects/key-work.ts";
import { keyModel } from "./key-model.ts";

/** A setting of the bucket: in force from some moment of this time on. */
export interface SettingChange {
  readonly versioning: Versioning;
  readonly calledAt: number;
  readonly returnedAt: number;
}

export function judgeKey(operations: readonly KeyOperation[], settings: readonly SettingChange[]): void {
  const isNull = settings.at(-1)?.versioning !== "enabled";
  const { verdict, ...why } = checkLinearizability(keyModel(isNull, listedAtEnd(operations)), operations);
  expect({ verdict, why: verdict === "linearizable" ? "" : why }).toEqual({ verdict: "linearizable", why: "" });
  for (const operation of operations) expect(operation).toSatisfy((each) => wentBySetting(each, settings));
}

/** The answer of the last operation, if it lists the versions and everything else returned before. */
function listedAtEnd(operations: readonly KeyOperation[]): readonly string[] {
  const last = operations.at(-1);
  if (last?.input.kind !== "list versions") return [];
  const { calledAt } = last;
  const isLast = operations.slice(0, -1).every(({ returnedAt }) => returnedAt === "never" || returnedAt <= calledAt);
  return isLast ? (last.output?.found ?? []) : [];
}

/** Changes come one after the other, the first before all operations. */
function wentBySetting({ output, calledAt, returnedAt }: KeyOperation, settings: readonly SettingChange[]): boolean {
  if (output === undefined || (output.isNull === undefined && output.isRemoval === undefined)) return true;
  const until = returnedAt === "never" ? Infinity : returnedAt;
  return settings.some(({ versioning, calledAt: since }, index) => {
    const endsAt = settings[index + 1]?.returnedAt ?? Infinity;
    if (since > until || endsAt < calledAt) return false;
    if (output.isRemoval === true) return versioning === "off";
    return output.isNull === (versioning !== "enabled");
  });
}
