// Scenarios of a torn slot in a lock table. The disk disappeared and returned in the same boot as another device,
// without its unsynced data; or another program has cut off the slot while its holder is alive.
import { slotBytesMax } from "../../../src/durable/chain/epoch.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import type { PathHold } from "../../../src/locks/path/path-hold.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import {
  actor,
  mustHold,
  type ActorContext,
  type Scenario,
  type ScenarioSize,
} from "../../../src/testing/explorer/scenario.ts";
import {
  ground,
  isPermanent,
  lockScenario,
  openLocks,
  shortLeaseMs,
  visit,
  type LockScenarioOptions,
} from "./lock-actors.ts";

const table = `${ground}/table`;
/** The id of the process that transfers its hold and ends. Ids are the same in every run. */
const giver = { id: "none" };

export function tornSlotScenarios(options: LockScenarioOptions = {}): Scenario[] {
  const short = { ...options, leaseMs: shortLeaseMs };
  return [
    ...returningDiskScenarios(options),
    cutOffScenario({ who: "its holder", size: "medium" }, short, async ({ ports }) => {
      return await (await openLocks(ports, short)).acquire("till");
    }),
    cutOffScenario({ who: "the receiver of a hold", size: "large" }, short, async ({ ports }) => {
      const giving = await openLocks(ports, short);
      const token = await (await giving.acquire("till")).transfer();
      const hold = await (await openLocks(ports, short)).receive(token);
      const { ground: joined } = giving.table;
      giver.id = (await joined.session()).holder.id;
      await giving.close();
      await joined.close();
      return hold;
    }),
  ];
}

/** The holder's heart beats, so the disk did not go away: the slot is damaged, and no process may skip it. */
function cutOffScenario(
  { who, size }: { readonly who: string; readonly size: ScenarioSize },
  short: LockScenarioOptions,
  hold: (context: ActorContext) => Promise<PathHold>,
): Scenario {
  return lockScenario({
    name: `locks: the newest slot is cut off while ${who} lives`,
    size,
    about: "Another process gets an error about the damage, and does not enter beside the holder.",
    beatsMax: 8,
    meanwhile: ({ disk }) => cutOffNewestSlot(disk),
    // A process that is allowed to begins a new epoch.
    isPermanent: (path) =>
      isPermanent(path, { hearts: true, sleeps: false, isCollected: true }) && !path.includes(giver.id),
    actors: {
      ada: actor({
        prepare: hold,
        run: async (context, held) => {
          await visit(context, held, () => context.ports.clock.sleep(shortLeaseMs));
          await orDamaged(context, () => held.release());
        },
      }),
      bob: actor({
        run: async (context) => {
          await orDamaged(context, async () => {
            const second = await (await openLocks(context.ports, short)).tryAcquire("till");
            if (second !== undefined) await visit(context, second);
          });
        },
      }),
    },
  });
}

async function cutOffNewestSlot(disk: Disk): Promise<void> {
  const [epoch = ""] = (await disk.list(table)).filter((name) => name !== "epochs");
  const slots = (await disk.list(`${table}/${epoch}`)).filter((name) => name !== "open");
  const newest = `${table}/${epoch}/${slots.sort().at(-1)}`;
  const bytes = await disk.readFile(newest, slotBytesMax);
  await disk.unlink(newest);
  await disk.createFile(newest, bytes.subarray(0, bytes.length / 2), { sync: true });
}

async function orDamaged({ note }: ActorContext, action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (!isHoldfastError(error, "CORRUPT")) throw error;
    note("told", error.code);
  }
}

function returningDiskScenarios(options: LockScenarioOptions): Scenario[] {
  return (["known", "unknown"] as const).map((holder) =>
    lockScenario({
      name: `locks: the disk comes back in the same boot, its holder ${holder} to the process table`,
      about: "A slot is torn, and the heartbeat file is not the locked one. No process is stopped permanently.",
      powerCuts: true,
      isPermanent: () => false,
      actors: {
        ada: actor({
          prepare: async ({ ports }) => await openLocks(inOneBoot(ports), { ...options, leaseMs: shortLeaseMs }),
          run: async (_, locks) => {
            await locks.acquire("till");
            await (await locks.acquire("drawer")).release();
          },
        }),
      },
      audit: async (ports) => {
        const locks = await openLocks(withTime(inOneBoot(ports, holder === "unknown")), {
          ...options,
          diskOf: asAnotherDevice,
        });
        mustHold((await locks.tryAcquire("shelf")) !== undefined, "a lock that no process held cannot be had");
      },
    }),
  );
}

function inOneBoot(ports: Ports, isElsewhere = false): Ports {
  const processSpace = isElsewhere ? "another container" : "this container";
  return { ...ports, host: { ...ports.host, bootId: "one boot", processSpace } };
}

/** Moves the clock on while the auditor sleeps. */
function withTime(ports: Ports): Ports {
  let sleptMs = 0;
  const { clock } = ports;
  return {
    ...ports,
    clock: {
      ...clock,
      monotonicMs: () => clock.monotonicMs() + sleptMs,
      wallMs: () => clock.wallMs() + sleptMs,
      sleep: async (ms, options) => {
        if (options?.background) await clock.sleep(ms, options);
        else sleptMs += ms;
      },
    },
  };
}

function asAnotherDevice(disk: Disk): Disk {
  const stat: Disk["stat"] = async (path) => {
    const found = await disk.stat(path);
    return { ...found, identity: `${found.identity} of another device` };
  };
  return new Proxy(disk, {
    get: (target, name) => {
      if (name === "stat") return stat;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
