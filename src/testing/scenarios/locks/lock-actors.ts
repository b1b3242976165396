// The processes of lock scenarios: what they open, how they visit what they lock, and what must
// hold of every visit.
import { Ground } from "../../../durable/liveness/ground.ts";
import { isHoldfastError } from "../../../errors.ts";
import type { Claim } from "../../../locks/table/claim.ts";
import { conflictsWith } from "../../../locks/table/conflict.ts";
import type { PathHold } from "../../../locks/path/path-hold.ts";
import type { AcquireManyOptions, LockRequest } from "../../../locks/path/path-locks.ts";
import { TablePathLocks, type TablePathLocksOptions } from "../../../locks/path/table-path-locks.ts";
import type { Disk } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import { actor, mustHold, type Actor, type ActorContext, type Fact, type Scenario } from "../../explorer/scenario.ts";

export const ground = "/ground";
export const root = "/tree";
/** Of actors that may sleep past it. */
export const shortLeaseMs = 400;
const longLeaseMs = 100 * shortLeaseMs;

/** The scenarios run on the real table and verbs, or on known-wrong variants. */
export interface LockScenarioOptions extends Pick<TablePathLocksOptions, "TableClass" | "verbs" | "slotsPerEpoch"> {
  /** Default: so long that no process dies of silence. */
  readonly leaseMs?: number | undefined;
  readonly diskOf?: ((disk: Disk) => Disk) | undefined;
}

/** Paths are keys: how one becomes the other is not what these scenarios are about. */
const plainKeys = {
  clean: (path: string) => path,
  locate: async (path: string) => ({ path, key: path }),
  keyOf: async (path: string) => path,
};

export async function openLocks(
  ports: Ports,
  { leaseMs = longLeaseMs, diskOf, ...options }: LockScenarioOptions = {},
): Promise<TablePathLocks> {
  const disk = diskOf?.(ports.disk) ?? ports.disk;
  const place = await Ground.open({ ...ports, disk }, ground, { leaseMs });
  return await TablePathLocks.open(place, { root, keys: plainKeys, ...options });
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

/** Inside for one step, at which others can come in if nothing keeps them out. */
export async function visit({ ports, note }: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  note("enter", { claims: hold.requests, fence: hold.fence } satisfies Visit);
  // A name that is not there: else the step would be taken at once, and no other could come in
  // meanwhile.
  await (work?.() ?? ports.disk.canOpen(`${root}/inside`));
  note("leave");
}

/** Inside for a step at which others may come in: a look at a name that may be there or not. */
export async function stay(context: ActorContext, hold: PathHold, work?: () => Promise<void>): Promise<void> {
  await visit(context, hold, async () => {
    await work?.();
    await context.ports.disk.canOpen(`${root}/inside`);
  });
}

/** Acquires the locks, is inside, releases them. To be refused, or to have slept, is an answer. */
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

/** The actors that are inside, and with what, as far as living and waking actors know. */
export function insiders(facts: readonly Fact[]): Map<string, Visit> {
  const inside = new Map<string, Visit>();
  for (const { actor: name, what, value } of facts) {
    if (what === "enter") inside.set(name, value as Visit);
    // Stopped: it may sleep past its lease, and then others come in. What it commits after that is
    // refused.
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
 * Only its maker knows a hold file until it is linked, a staged file until it is committed, and a
 * file in a temp directory for ever. Where no heart beats and no actor sweeps, the files of the
 * holders do not change.
 */
function isUnseen(operation: string, path: string, holdersChange: boolean): boolean {
  if (!holdersChange && path.startsWith(`${ground}/holders/`)) return true;
  const isMaking = ["create", "write", "mkdir", "sync", "sync directory"].includes(operation);
  return path.startsWith(`${ground}/temp/`) || (isMaking && /^\/ground\/(holds|redo)\/./.test(path));
}

interface Surroundings {
  /** Hearts beat, and change what is in their files. */
  readonly hearts: boolean;
  /**
   * An actor may sleep past its lease: then it begins a new session, and removes the record of the
   * old one.
   */
  readonly sleeps: boolean;
  readonly isCollected: boolean;
}

/** No actor sweeps in these scenarios. */
export function isPermanent(path: string, { hearts, sleeps, isCollected }: Surroundings): boolean {
  if ([ground, root, `${ground}/table`].includes(path)) return true;
  if (path.startsWith(`${ground}/holders/`)) return !sleeps && (path.endsWith(".json") || !hearts);
  return `${path}/`.startsWith(isCollected ? `${ground}/table/epochs/` : `${ground}/table/`);
}

/** What every scenario of locks shares. */
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

/**
 * Tries again and again, each time after the lease of a sleeper; with its hold it is inside for a
 * step.
 */
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

/** An actor that holds `path` when the scenario begins, and releases it in the end. */
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
