// Scenarios of path locks: two and three processes that conflict in every way the table of modes knows, wait for each other, widen, hand over and break.
import { Ground } from "../../durable/ground.ts";
import { isHoldfastError } from "../../errors.ts";
import type { Claim } from "../../locks/claim.ts";
import { conflictsWith } from "../../locks/conflict.ts";
import type { PathHold } from "../../locks/path-hold.ts";
import type { AcquireManyOptions, LockRequest } from "../../locks/path-locks.ts";
import { TablePathLocks, type TablePathLocksOptions } from "../../locks/table-path-locks.ts";
import type { Volume } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import { actor, mustHold, type Actor, type ActorContext, type Fact, type Scenario } from "../explorer/scenario.ts";

const ground = "/ground";
export const root = "/tree";
/** Of those who may sleep past it. */
export const shortLeaseMs = 400;
const longLeaseMs = 100 * shortLeaseMs;

export interface LockScenarioOptions extends Pick<
  TablePathLocksOptions,
  "EntranceClass" | "TableClass" | "slotsPerEpoch"
> {
  /** Default: so long that nobody dies of silence. */
  readonly leaseMs?: number | undefined;
  /** What the scenarios run on: the real ones, or a known-wrong variant. */
  readonly LocksClass?: typeof TablePathLocks | undefined;
}

/** Paths are keys as they are: how one becomes the other is not what these scenarios are about. */
const plainKeys = { clean: (path: string) => path, keyOf: async (path: string) => path };

export async function openLocks(
  ports: Ports,
  { LocksClass = TablePathLocks, leaseMs = longLeaseMs, ...options }: LockScenarioOptions = {},
): Promise<TablePathLocks> {
  const place = await Ground.open(ports, ground, { leaseMs });
  return await LocksClass.open(place, { root, keys: plainKeys, ...options });
}

export interface Visit {
  readonly claims: readonly Claim[];
  readonly fence: number;
}

/** An actor that opens the locks before the scenario begins. */
export function locker(
  options: LockScenarioOptions,
  run: (context: ActorContext, locks: TablePathLocks) => Promise<void>,
): Actor {
  return actor({ prepare: ({ ports }) => openLocks(ports, options), run });
}

/** Inside for one step, so that others can come in if nothing keeps them out. */
export async function visit({ ports, note }: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  note("enter", { claims: hold.requests, fence: hold.fence } satisfies Visit);
  // A name that is not there, or the step would be taken at once and nobody could come in meanwhile.
  await (work?.() ?? ports.disk.canOpen(`${root}/inside`));
  note("leave");
}

/** Takes the locks, is inside, lets go; being refused, or having slept, is an answer. */
export function visitor(
  wanted: readonly (string | LockRequest)[],
  options: LockScenarioOptions & { readonly acquire?: AcquireManyOptions } = {},
): Actor {
  return locker(options, async (context, locks) => {
    await orTold(context, async () => {
      const hold = await locks.acquireAll(wanted, options.acquire);
      await visit(context, hold);
      await hold.release();
    });
  });
}

/** What an honest process may be told instead of being let in. */
export async function orTold({ note }: ActorContext, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (
      !isHoldfastError(
        error,
        "LOCK_TIMEOUT",
        "LOCK_LOST",
        "DEADLOCK",
        "NO_SUCH_TRANSFER",
        "OUTCOME_UNKNOWN",
        "IO_ERROR",
      )
    )
      throw error;
    note("told", error.code);
  }
}

/** Who is inside now with what, as far as the living and waking know. */
export function insiders(facts: readonly Fact[]): Map<string, Visit> {
  const inside = new Map<string, Visit>();
  for (const { actor: name, what, value } of facts) {
    if (what === "enter") inside.set(name, value as Visit);
    // Stopped: it may sleep past its lease, and then others come in. That cannot be helped; what it commits then is refused.
    else if (["leave", "killed", "stopped", "evicted"].includes(what))
      inside.delete(what === "evicted" ? String(value) : name);
  }
  return inside;
}

export function neverTogether(facts: readonly Fact[]): void {
  const last = facts.at(-1);
  if (last?.what !== "enter") return;
  const { claims, fence } = last.value as Visit;
  for (const [name, other] of insiders(facts))
    mustHold(
      name === last.actor || !conflictsWith(claims, other.claims),
      `${name} and ${last.actor} are inside together`,
    );
  for (const { actor: name, what, value } of facts.slice(0, -1))
    if (what === "enter" && name !== last.actor && conflictsWith(claims, (value as Visit).claims))
      mustHold(fence > (value as Visit).fence, `fence ${fence} came after fence ${(value as Visit).fence}`);
}

/**
 * A hold file is known to its maker alone until it is linked, what is staged until it is committed, and what is in a temp directory for ever. Where no heart beats and
 * nobody sweeps, the files of the holders do not change.
 */
function isUnseen(operation: string, path: string, hearts: boolean): boolean {
  if (!hearts && path.startsWith(`${ground}/holders/`)) return true;
  const isMaking = ["create", "write", "mkdir", "sync", "sync directory"].includes(operation);
  return path.startsWith(`${ground}/temp/`) || (isMaking && /^\/ground\/(holds|redo)\/./.test(path));
}

/** Nobody sweeps in these scenarios; and where no heart beats, beats do not change. */
function isPermanent(path: string, hearts: boolean, isCollected: boolean): boolean {
  if ([ground, root, `${ground}/table`].includes(path)) return true;
  if (path.startsWith(`${ground}/holders/`)) return path.endsWith(".json") || !hearts;
  return `${path}/`.startsWith(isCollected ? `${ground}/table/epochs/` : `${ground}/table/`);
}

/** What every scenario of locks shares. */
export function lockScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  { isCollected = false }: { readonly isCollected?: boolean } = {},
): Scenario {
  return {
    setup: async ({ disk }) => {
      await disk.mkdir(ground);
      await disk.mkdir(root);
    },
    isPermanent: (path) => isPermanent(path, scenario.beatsMax !== undefined, isCollected),
    isUnseen: (operation, path) => isUnseen(operation, path, scenario.beatsMax !== undefined),
    check: neverTogether,
    ...scenario,
  };
}

/** Tries again and again, each time after the lease of those who may sleep; with what it holds it is inside for a step. */
export function patient(
  wanted: readonly (string | LockRequest)[],
  options: LockScenarioOptions,
  work?: (context: ActorContext, hold: PathHold, locks: TablePathLocks) => Promise<void>,
): Actor {
  return locker(options, async (context, locks) => {
    for (let attempt = 0; attempt < 6; attempt++) {
      try {
        const hold = await locks.acquireAll(wanted);
        await visit(context, hold, work && (() => work(context, hold, locks)));
        return await hold.release();
      } catch (error) {
        if (!isHoldfastError(error, "LOCK_TIMEOUT")) throw error;
      }
      await context.ports.clock.sleep(shortLeaseMs);
    }
    context.note("gave up");
  });
}

export function collector(options: LockScenarioOptions): Actor {
  return locker({ ...options, slotsPerEpoch: 1 }, async (_context, locks) => void (await locks.table.collect()));
}

/** An actor that holds `path` when the scenario begins, and lets go of it in the end. */
export function holding(
  path: string,
  options: LockScenarioOptions & { readonly shared?: boolean },
  run: (context: ActorContext, hold: PathHold, locks: TablePathLocks) => Promise<void>,
): Actor {
  const { shared = false, ...more } = options;
  return actor({
    prepare: async ({ ports }) => {
      const locks = await openLocks(ports, more);
      return { locks, hold: await locks.acquire(path, { shared }) };
    },
    run: async (context, { locks, hold }) => {
      await run(context, hold, locks);
      await hold.release();
    },
  });
}

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
    about:
      "One widens a file to the tree above it, while another waits for a file in that tree that a third is about to release.",
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

/** Nobody leaves in good faith after another came in: its release, or its own deadline, must have told it. */
function sleepersAreTold(facts: readonly Fact[]): void {
  const gaveUp = facts.some(({ what }) => what === "gave up");
  mustHold(!gaveUp, "a sleeper blocked the others for ever");
}

const waiting = { acquire: { timeoutMs: Infinity } };
const tree = (path: string): LockRequest => ({ path, mode: "tree" });
const shared = (path: string): LockRequest => ({ path, shared: true });
const share: Volume = { kind: "network", type: "nfs4", mountOptions: [] };
const hints = { quirks: { watch: "any time" }, troubles: { hint: 1 } } as const;

/** The same while the table rolls with every append and somebody deletes old epochs. */
function rolling(scenario: Scenario): Scenario {
  const { name, about, actors, ...rest } = scenario;
  return lockScenario({
    ...rest,
    name: `${name}, rolling and collected`,
    about: `${about} Meanwhile old epochs of the table are deleted.`,
    actors: { ...actors, col: collector({}) },
    isPermanent: (path) => isPermanent(path, rest.beatsMax !== undefined, true),
  });
}

/** All scenarios of path locks; those of two actors also with a table that rolls. */
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
      about: "Two want one path and wait for it; one may be killed at any moment.",
      ...hints,
      actors: { ada: of(["a"], waiting), bob: of(["a"], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: exact against tree",
      about: "One wants a file, the other the tree above it.",
      ...hints,
      actors: { ada: of(["a/b"], waiting), bob: of([tree("a")], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: tree against tree",
      about: "One tree lies in the other.",
      ...hints,
      actors: { ada: of([tree("a/b")], waiting), bob: of([tree("a")], waiting) },
      killsMax: 1,
    }),
    lockScenario({
      name: "locks: two moves crosswise",
      about: "One moves a to b, the other b to a: each is one grant, so nobody waits for ever.",
      ...hints,
      actors: { ada: of([tree("a"), tree("b")], waiting), bob: of([tree("b"), tree("a")], waiting) },
    }),
    lockScenario({
      name: "locks: three that do not wait",
      about: "A file, the tree above it, and the file again; each tries once.",
      actors: { ada: of(["a/b"]), bob: of([tree("a")]), cleo: of(["a/b"]) },
    }),
    lockScenario({
      name: "locks: two readers and a writer",
      about: "Readers may be inside together, the writer only alone.",
      ...hints,
      actors: { ada: of([shared("a")]), bob: of(["a"], waiting), cleo: of([shared("a")]) },
    }),
    lockScenario({
      name: "locks: two wait for one",
      about: "One holds, two stand in line behind it in the order of their requests.",
      ...hints,
      actors: { ada: of(["a"], waiting), bob: of(["a"], waiting), cleo: of(["a"], waiting) },
    }),
    lockScenario({
      name: "locks: one sleeps past its lease",
      about: "The other takes the lock when the lease is over; who slept learns it before it goes on.",
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
      about: "One refreshes its hold; another judges it once its lease has gone by.",
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
    upgradeAgainstWaiter(options),
    { ...upgradeAgainstWaiter(options), ...hints, name: "locks: upgrade against a waiter, with hints" },
    lockScenario({
      name: "locks: two upgrades against each other",
      about: "Two readers want to become writers: one of them is told that both would wait for ever.",
      actors: { ada: upgrader(options), bob: upgrader(options) },
    }),
    lockScenario({
      name: "locks: downgrade against two waiters",
      about: "A writer becomes a reader; another reader waits, and a third wants to write.",
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
      about: "One hands its hold over, another takes it or not, a third wants it; each may be killed.",
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
        mustHold(ended === undefined, "a transfer that nobody took never lapsed");
      },
    }),
    lockScenario({
      name: "locks: three machines with old listings",
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
