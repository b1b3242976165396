// The processes of lock scenarios: how they open and visit locks, and which rules every visit must obey.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { type Claim, conflictsWith } from "../../../src/locks/table/conflict.ts";
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import type { AcquireManyOptions, LockRequest } from "../../../src/locks/path/path-locks.ts";
import { TablePathLocks, type TablePathLocksOptions } from "../../../src/locks/path/table-path-locks.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  type Actor,
  type ActorContext,
  type Fact,
  type Scenario,
} from "../../../src/testing/explorer/scenario.ts";

export const ground = "/ground";
export const root = "/tree";
/** The lease of actors that may sleep past it. */
export const shortLeaseMs = 400;
const longLeaseMs = 100 * shortLeaseMs;

/** The options of lock scenarios, which run on the real locks or on known-wrong variants. */
export interface LockScenarioOptions extends Pick<TablePathLocksOptions, "TableClass" | "slotsPerEpoch"> {
  /** Turns the opened locks into a known-wrong variant. */
  readonly spoil?: ((locks: TablePathLocks) => void) | undefined;
  /** Default: so long that no process is declared dead for silence. */
  readonly leaseMs?: number | undefined;
  readonly diskOf?: ((disk: Disk) => Disk) | undefined;
}

/** Paths are used as keys unchanged: these scenarios do not test the mapping. */
const plainKeys = {
  clean: (path: string) => path,
  locate: async (path: string) => ({ path, key: path }),
  keyOf: async (path: string) => path,
};

export async function openLocks(
  ports: Ports,
  { leaseMs = longLeaseMs, diskOf, spoil, ...options }: LockScenarioOptions = {},
): Promise<TablePathLocks> {
  const disk = diskOf?.(ports.disk) ?? ports.disk;
  const place = await Ground.open({ ...ports, disk }, ground, { leaseMs });
  const locks = await TablePathLocks.open(place, { root, keys: plainKeys, ...options });
  spoil?.(locks);
  return locks;
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

/** Stays inside for one step, at which others can enter if nothing excludes them. */
export async function visit({ ports, note }: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  note("enter", { claims: hold.requests, fence: hold.fence } satisfies Visit);
  // The name does not exist. Otherwise the step would be taken at once, and no other actor could enter meanwhile.
  await (work?.() ?? ports.disk.canOpen(`${root}/inside`));
  note("leave");
}

/** Stays inside for a step at which others may enter: it checks a name that may or may not exist. */
export async function stay(context: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  await visit(context, hold, async () => {
    await work?.();
    await context.ports.disk.canOpen(`${root}/inside`);
  });
}

/** Acquires the locks, stays inside for a step, and releases them. A refusal, or having slept, is a valid answer. */
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

/** Notes the errors that a correct process may get instead of a hold. */
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

/** Returns the actors that are inside and what they hold, as far as living actors that are awake know. */
export function insiders(facts: readonly Fact[]): Map<string, Visit> {
  const inside = new Map<string, Visit>();
  for (const { actor: name, what, value } of facts) {
    if (what === "enter") inside.set(name, value as Visit);
    // A stopped actor may sleep past its lease, so others may enter. Its later commits are refused.
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
 * Only its maker knows a hold file until it is linked, a staged file until it is committed, and any file in a temp
 * directory. If no heart beats and no actor sweeps, the holders' files do not change.
 */
function isUnseen(operation: string, path: string, holdersChange: boolean): boolean {
  if (!holdersChange && path.startsWith(`${ground}/holders/`)) return true;
  const isMaking = ["create", "write", "mkdir", "sync", "sync directory"].includes(operation);
  return path.startsWith(`${ground}/temp/`) || (isMaking && /^\/ground\/(holds|redo)\/./.test(path));
}

interface Surroundings {
  /** True if hearts beat: they change the holders' files. */
  readonly hearts: boolean;
  /** True if an actor may sleep past its lease. It then begins a new session and removes the record of the old one. */
  readonly sleeps: boolean;
  readonly isCollected: boolean;
}

/** No actor sweeps in these scenarios. */
export function isPermanent(path: string, { hearts, sleeps, isCollected }: Surroundings): boolean {
  if ([ground, root, `${ground}/table`].includes(path)) return true;
  if (path.startsWith(`${ground}/holders/`)) return !sleeps && (path.endsWith(".json") || !hearts);
  return `${path}/`.startsWith(isCollected ? `${ground}/table/epochs/` : `${ground}/table/`);
}

/** Adds what every lock scenario shares. */
export function lockScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  { isCollected = false }: { readonly isCollected?: boolean } = {},
): Scenario {
  const hearts = scenario.beatsMax !== undefined;
  const sleeps = scenario.pauses !== undefined;
  return {
    setup: async ({ disk }) => {
      await disk.mkdir(ground);
      await disk.mkdir(root);
    },
    isPermanent: (path) => isPermanent(path, { hearts, sleeps, isCollected }),
    isUnseen: (operation, path) => isUnseen(operation, path, hearts || sleeps),
    check: neverTogether,
    ...scenario,
  };
}

/** Retries up to six times, a lease of a sleeper apart. Once it has the hold, it stays inside for a step. */
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

/** Holds `path` when the scenario begins, and releases it at the end. */
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
