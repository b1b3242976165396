// Scenarios of holds within one hold: they exclude each other, and no fence among them falls.
import { conflictsWith } from "../../../locks/table/conflict.ts";
import { actor, mustHold, valuesOf, type Fact, type Scenario } from "../../explorer/scenario.ts";
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
 * Two callers of one process within one hold: what one wants is covered, what the other wants only
 * in part.
 */
function twoWithinOne(options: LockScenarioOptions): Scenario {
  const wanted: readonly (readonly string[])[] = [["a/b"], ["a/b", "z"]];
  return lockScenario({
    name: "hands: two callers within one hold, and another process",
    about: "The outer hold covers what one of them wants, and a part of what the other wants: they exclude each other.",
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

/** A hold that comes after another on one path has no lower fence, also in the same process. */
function fencesNeverFall(facts: readonly Fact[]): void {
  const last = facts.at(-1);
  if (last?.what !== "enter") return;
  const { claims, fence } = last.value as Visit;
  for (const before of valuesOf<Visit>(facts.slice(0, -1), "enter"))
    if (conflictsWith(claims, before.claims))
      mustHold(fence >= before.fence, `fence ${fence} came after fence ${before.fence}`);
}

/**
 * A process works under a hold, then under a hold within it that reaches beyond it, then under the
 * first again.
 */
function fencesOfAFamily(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "hands: a hold within another, and a process that waits for that",
    about: "What both can write is written with fences that never fall, and so is what the other process waits for.",
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
