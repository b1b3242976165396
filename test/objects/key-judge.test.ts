// The judge itself: it must refute histories that break a promise, also with the shortened search.
import { expect, test } from "vitest";
import type { KeyInput, KeyOperation, KeyOutput } from "../../harness/processes/objects/key-work.ts";
import { judgeKey, type SettingChange } from "./key-judge.ts";

const enabled: SettingChange[] = [{ versioning: "enabled", calledAt: -1, returnedAt: -1 }];

/** Puts `a` and `b` one after the other, `c` by a process that was killed, and lists the versions. */
function historyEndingWith(found: readonly string[]): KeyOperation[] {
  const done = (at: number, input: KeyInput, output: KeyOutput): KeyOperation => {
    return { process: "p", input, output, calledAt: at, returnedAt: at + 1 };
  };
  return [
    done(0, { kind: "put", body: "a" }, { isNull: false }),
    { process: "killed", input: { kind: "put", body: "c" }, calledAt: 0, returnedAt: "never" },
    done(2, { kind: "put", body: "b" }, { isNull: false }),
    done(9, { kind: "list versions" }, { found }),
  ];
}

test.each(
  [
    ["b", "a"],
    ["c", "b", "a"],
    ["b", "c", "a"],
    ["b", "a", "c"],
  ].map((found) => ({ found })),
)("a killed put may be anywhere or missing: $found", ({ found }) => {
  judgeKey(historyEndingWith(found), enabled);
});

test.each([["a"], ["a", "b"], ["c", "a", "b"], ["b", "a", "a"], ["x", "b", "a"]].map((found) => ({ found })))(
  "a lost, repeated, foreign or reordered version is refuted: $found",
  ({ found }) => {
    expect(() => judgeKey(historyEndingWith(found), enabled)).toThrow("violated");
  },
);
