// Scenarios of path locks: two or three processes conflict in every way that the conflict table allows, wait for each
// other, upgrade, transfer and break.
import type { AcquireManyOptions, LockRequest } from "../../../src/locks/path/path-locks.ts";
import { mustHold, valuesOf, type Actor, type Fact, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import {
  collector,
  holding,
  isPermanent,
  lockScenario,
  locker,
  neverTogether,
  orTold,
  patient,
  root,
  shortLeaseMs,
  visit,
  visitor,
  type LockScenarioOptions,
  type Visit,
} from "./lock-actors.ts";
import { share } from "../volumes.ts";

function upgrader(options: LockScenarioOptions): Actor {
  return holding("a", { ...options, shared: true }, async (context, hold) => {
    await orTold(context, async () => {
      await hold.upgrade({ shared: false }, { timeoutMs: Infinity });
      await visit(context, hold);
    });
  });
}

function upgradeAgainstWaiter(options: LockScenarioOptions): Scenario {
  return lockScenario({
    name: "locks: upgrade against a waiter",
    size: "medium",
    about:
      "One process upgrades a path to its tree, while another waits for a file in that tree that a third is about to release.",
    actors: {
      ada: holding("a", options, async (context, hold) => {
        await orTold(context, async () => {
          await hold.upgrade("tree");
          await visit(context, hold);
        });
      }),
      cleo: holding("a/b", options, async () => undefined),
      bob: visitor(["a/b"], { ...options, ...waiting }),
    },
  });
}

/**
 * No actor believes that it is still inside after another has entered. Its release, or its own deadline, must have
 * told it.
 */
function sleepersAreTold(facts: readonly Fact[]): void {
  const gaveUp = facts.some(({ what }) => what === "gave up");
  mustHold(!gaveUp, "a sleeper blocked the others for ever");
}

/** Acquires twice, and notes when each attempt begins. */
function asker(path: string, options: LockScenarioOptions): Actor {
  return locker(options, async (context, locks) => {
    for (let attempt = 0; attempt < 2; attempt++) {
      context.note("asks");
      const hold = await locks.tryAcquire(path);
      if (hold !== undefined) return await hold.release();
      context.note("refused");
      await context.ports.clock.sleep(shortLeaseMs);
    }
  });
}

/** A caller that asks after the release is not refused. */
function noneIsRefusedLate(facts: readonly Fact[]): void {
  const order = facts.map(({ what }) => what);
  const asked = order.lastIndexOf("asks");
  const isLate = order.includes("let go") && order.indexOf("let go") < asked;
  mustHold(!(isLate && order.lastIndexOf("refused") > asked), "a caller was refused for a holder that had released");
}

/** Much longer than the pauses between two polls of a waiter. */
const silentLeaseMs = 10 * shortLeaseMs;

/** Holds `path`, is silent for longer than all leases together, and carries on if it still may. */
function silent(path: string, options: LockScenarioOptions): Actor {
  return holding(path, { ...options, leaseMs: silentLeaseMs }, async (context, hold) => {
    await context.ports.clock.sleep(10 * silentLeaseMs);
    await orTold(context, async () => {
      await hold.assertHeld();
      await visit(context, hold);
    });
  });
}

/** Waits for `wanted`, and notes how many leases of its blockers it waited for. */
function leaseCounter(wanted: readonly LockRequest[], options: LockScenarioOptions): Actor {
  return locker(options, async (context, locks) => {
    const { clock } = context.ports;
    const startMs = clock.monotonicMs();
    const hold = await locks.acquireAll(wanted, { timeoutMs: Infinity });
    context.note("leases", (clock.monotonicMs() - startMs) / silentLeaseMs);
    await visit(context, hold);
    await hold.release();
  });
}

const waiting = { acquire: { timeoutMs: Infinity } };
const tree = (path: string): LockRequest => ({ path, mode: "tree" });
const shared = (path: string): LockRequest => ({ path, shared: true });
const hints = { quirks: { watch: "any time" }, troubles: { hint: 1 } } as const;

/** With a rolling table these have more states than a medium scenario may have. */
const largeWhenRolling: readonly string[] = ["locks: two upgrades against each other"];

/** The same scenario while the table rolls with every append and a collector deletes old epochs. */
function rolling(scenario: Scenario): Scenario {
  const { name, about, actors, ...rest } = scenario;
  return lockScenario({
    ...rest,
    name: `${name}, rolling and collected`,
    size: largeWhenRolling.includes(name) ? "large" : "medium",
    about: `${about} Meanwhile old epochs of the table are deleted.`,
    actors: { ...actors, col: collector({}) },
    isPermanent: (path) =>
      isPermanent(path, { hearts: rest.beatsMax !== undefined, sleeps: rest.pauses !== undefined, isCollected: true }),
  });
}

/** All scenarios of path locks. Those of two actors also run with a rolling table. */
export function pathLockScenarios(options: LockScenarioOptions = {}): Scenario[] {
  const rolled = steadyScenarios({ ...options, slotsPerEpoch: 1 });
  return [...steadyScenarios(options), ...rolled.filter(({ actors }) => Object.keys(actors).length === 2).map(rolling)];
}

function steadyScenarios(options: LockScenarioOptions): Scenario[] {
  const of = (wanted: readonly (string | LockRequest)[], more: { readonly acquire?: AcquireManyOptions } = {}): Actor =>
    visitor(wanted, { ...options, ...more });
  return [
    lockScenario({
      name: "locks: exact against exact",
      about: "Two processes want one path and wait for it. One may be killed at any moment.",
      ...hints,
      actors: { ada: of(["a"], waiting), bob: of(["a"], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: exact against tree",
      about: "One process wants a file, the other the tree above it.",
      ...hints,
      actors: { ada: of(["a/b"], waiting), bob: of([tree("a")], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: tree against tree",
      about: "One process wants a tree that contains the other's tree.",
      ...hints,
      actors: { ada: of([tree("a/b")], waiting), bob: of([tree("a")], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: two moves crosswise",
      about:
        "One process moves a to b, the other b to a. Each gets both paths in one grant, so neither waits for ever.",
      ...hints,
      actors: { ada: of([tree("a"), tree("b")], waiting), bob: of([tree("b"), tree("a")], waiting) },
    }),
    lockScenario({
      name: "locks: three that do not wait",
      size: "medium",
      about: "The actors want a file, the tree above it, and the file again. Each tries once.",
      actors: { ada: of(["a/b"]), bob: of([tree("a")]), cleo: of(["a/b"]) },
    }),
    lockScenario({
      name: "locks: two readers and a writer",
      size: "medium",
      about: "Readers may be inside together. The writer must be alone.",
      ...hints,
      actors: { ada: of([shared("a")]), bob: of(["a"], waiting), cleo: of([shared("a")]) },
    }),
    lockScenario({
      name: "locks: two wait for one",
      size: "medium",
      about: "One process holds the lock, and two wait for it in the order of their requests.",
      ...hints,
      actors: { ada: of(["a"], waiting), bob: of(["a"], waiting), cleo: of(["a"], waiting) },
    }),
    lockScenario({
      name: "locks: one sleeps past its lease",
      size: "medium",
      about: "The other process takes the lock when the lease has ended. The sleeper learns it before it carries on.",
      beatsMax: 4,
      pauses: { ms: 4 * shortLeaseMs, count: 1, actors: ["ada"] },
      actors: { ada: visitor(["a"], { ...options, leaseMs: shortLeaseMs }), bob: patient(["a"], options) },
      check: (facts) => {
        neverTogether(facts);
        sleepersAreTold(facts);
      },
    }),
    lockScenario({
      name: "locks: refresh against expiry",
      size: "medium",
      about: "One process refreshes its hold. Another judges it once its lease has gone by.",
      beatsMax: 4,
      pauses: { ms: 4 * shortLeaseMs, count: 1, actors: ["ada"] },
      actors: {
        ada: locker({ ...options, leaseMs: shortLeaseMs }, async (context, locks) => {
          await orTold(context, async () => {
            const hold = await locks.acquire("a");
            await visit(context, hold, () => hold.refresh());
            context.note("refreshed", hold.fence);
            await hold.release();
          });
        }),
        bob: patient(["a"], options),
      },
      check: (facts) => {
        neverTogether(facts);
        const refreshed = facts.findIndex(({ what }) => what === "refreshed");
        const fence = facts[refreshed]?.value as number;
        const overtaking = facts.findIndex(({ what, value }) => what === "enter" && (value as Visit).fence > fence);
        mustHold(
          refreshed < 0 || overtaking < 0 || overtaking > refreshed,
          "a hold that others had dropped was refreshed",
        );
      },
    }),
    lockScenario({
      name: "locks: two silent holders and a waiter",
      about: "Both holders fall silent at the same time, so the waiter may drop both after one lease.",
      beatsMax: 0,
      actors: {
        ada: silent("a/1", options),
        cleo: silent("a/2", options),
        bob: leaseCounter([tree("a")], options),
      },
      check: (facts) => {
        neverTogether(facts);
        for (const leases of valuesOf<number>(facts, "leases"))
          mustHold(leases < 1.4, `two silent holders kept a waiter out for ${leases.toFixed(1)} leases`);
      },
    }),
    upgradeAgainstWaiter(options),
    {
      ...upgradeAgainstWaiter(options),
      ...hints,
      name: "locks: upgrade against a waiter, with hints",
      // The explorer exhausts this scenario without hints, and other scenarios with hints.
      size: "large",
    },
    lockScenario({
      name: "locks: two upgrades against each other",
      about: "Two readers upgrade to writers. One of them gets DEADLOCK, because both would wait for ever.",
      actors: { ada: upgrader(options), bob: upgrader(options) },
      check: (facts) => {
        neverTogether(facts);
        const refused = facts.filter(({ what, value }) => what === "told" && value === "DEADLOCK");
        mustHold(refused.length < 2, "both were refused, though one would have been enough");
      },
    }),
    lockScenario({
      name: "locks: downgrade against two waiters",
      size: "medium",
      about: "A writer becomes a reader. Another reader waits, and a third process wants to write.",
      actors: {
        ada: holding("a", options, async (context, hold) => {
          await visit(context, hold);
          await hold.downgrade({ shared: true });
          await visit(context, hold);
        }),
        bob: of([shared("a")], waiting),
        cleo: of(["a"]),
      },
    }),
    lockScenario({
      name: "locks: a transfer against a crash",
      size: "medium",
      about: "One process transfers its hold, another may receive it, and a third wants it. Each may be killed.",
      killsMax: 1,
      mortal: ["ada", "bob"],
      actors: {
        ada: locker(options, async (context, locks) => {
          await orTold(context, async () => {
            const hold = await locks.acquire("a");
            const token = await hold.transfer({ expiresMs: shortLeaseMs });
            await context.ports.disk.createFile(`${root}/token`, Buffer.from(token), { sync: true });
          });
        }),
        bob: locker(options, async (context, locks) => {
          await orTold(context, async () => {
            const token = Buffer.from(await context.ports.disk.readFile(`${root}/token`, 1000)).toString();
            const hold = await locks.receive(token);
            await visit(context, hold);
            await hold.release();
          });
        }),
        cleo: patient(["a"], options),
      },
      check: (facts) => {
        neverTogether(facts);
        const ended = facts.find(({ actor: name, what }) => name === "cleo" && what === "gave up");
        mustHold(ended === undefined, "a transfer that no process took never lapsed");
      },
    }),
    lockScenario({
      name: "locks: a waiter whose client remembers the hold file",
      about:
        "Another machine has released its hold. The file that it removed is still linked as a slot, and can be opened and linked from.",
      volume: share,
      profile: "share",
      quirks: { fileHandles: true },
      troubles: { stale: 1 },
      actors: {
        ada: {
          ...holding("a", options, async (context, hold) => {
            await hold.release();
            context.note("let go");
          }),
          machine: "m1",
        },
        bob: { ...asker("a", options), machine: "m2" },
      },
      check: (facts) => {
        neverTogether(facts);
        noneIsRefusedLate(facts);
      },
    }),
    lockScenario({
      name: "locks: three machines with old listings",
      size: "medium",
      about: "Listings and absent names come from caches.",
      volume: share,
      profile: "share",
      quirks: { staleListings: true, staleAbsence: true },
      troubles: { stale: 1 },
      actors: {
        ada: { ...of(["a"]), machine: "m1" },
        bob: { ...of(["a"]), machine: "m2" },
        cleo: { ...of([tree("")]), machine: "m3" },
      },
    }),
  ];
}
