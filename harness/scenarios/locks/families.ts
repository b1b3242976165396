// Scenarios of holds within one hold: they exclude each other, and their fences never fall.
import { conflictsWith } from "../../../src/locks/table/conflict.ts";
import { actor, mustHold, valuesOf, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  lockScenario,
  openLocks,
  orTold,
  root,
  stay,
  visitor,
  type LockScenarioOptions,
  type Visit,
} from "./lock-actors.ts";

export function familyScenarios(options: LockScenarioOptions = {}): Scenario[] {
  return [twoWithinOne(options), fencesOfAFamily(options)];
}

/**
 * Two callers of one process work within one hold. The hold covers one caller's request fully and the other's only in
 * part.
 */
function twoWithinOne(options: LockScenarioOptions): Scenario {
  const wanted: readonly (readonly string[])[] = [["a/b"], ["a/b", "z"]];
  return lockScenario({
    name: "hands: two callers within one hold, and another process",
    about: "The outer hold covers one caller's request and a part of the other's. The two callers exclude each other.",
    actors: {
      ada: actor({
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          return { locks, outer: await locks.acquire("a", { mode: "tree" }) };
        },
        run: async (context, { locks, outer }) => {
          const call = async (paths: readonly string[], number: number): Promise<void> => {
            const hold = await locks.acquireAll(paths, { within: outer, timeoutMs: Infinity });
            context.note("in", number);
            await context.ports.disk.canOpen(`${root}/inside`);
            context.note("out", number);
            await hold.release();
          };
          await Promise.all(wanted.map(call));
          await outer.release();
        },
      }),
      bob: visitor(["z"], options),
    },
    check: (facts) => {
      const inside = new Set<unknown>();
      for (const { what, value } of facts)
        if (what === "in") inside.add(value);
        else if (what === "out") inside.delete(value);
      mustHold(inside.size <= 1, `callers ${[...inside].join(" and ")} are inside together`);
    },
  });
}

/** On one path, a later hold never has a lower fence, even within one process. */
function fencesNeverFall(facts: readonly Fact[]): void {
  const last = facts.at(-1);
  if (last?.what !== "enter") return;
  const { claims, fence } = last.value as Visit;
  for (const before of valuesOf<Visit>(facts.slice(0, -1), "enter"))
    if (conflictsWith(claims, before.claims))
      mustHold(fence >= before.fence, `fence ${fence} came after fence ${before.fence}`);
}

/** A process works under a hold, then under an inner hold that reaches beyond it, then under the first hold again. */
function fencesOfAFamily(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a hold within another, and a process that waits for that",
    about:
      "Fences never fall on the paths that both holds can write, nor on the path that the other process waits for.",
    actors: {
      ada: actor({
        prepare: async ({ ports }) => {
          const locks = await openLocks(ports, options);
          return { locks, outer: await locks.acquire("a", { mode: "tree" }) };
        },
        run: async (context, { locks, outer }) => {
          await stay(context, outer);
          await orTold(context, async () => {
            const inner = await locks.acquireAll(["a/b", "z"], { within: outer, timeoutMs: Infinity });
            await stay(context, inner);
            await inner.release();
          });
          await stay(context, outer);
          await outer.release();
        },
      }),
      bob: visitor(["a/q"], { ...options, acquire: { timeoutMs: Infinity } }),
    },
    check: fencesNeverFall,
  });
}
