// The simulated processes of the semaphore's scenarios: who waits, who passes by, who has grown old, and who knows only the protocol.
import { isHoldfastError } from "../../errors.ts";
import type { LockName } from "../../locks/semaphore/lock-name.ts";
import type { SemaphoreOptions } from "../../locks/semaphore/options.ts";
import { Places } from "../../locks/semaphore/place.ts";
import { PortsSemaphore } from "../../locks/semaphore/semaphore.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Ports } from "../../ports/ports.ts";
import { actor, type Actor, type ActorContext } from "../explorer/scenario.ts";

export const directory = "/store";
export const path: string = `${directory}/job.lock`;
const staleMs = 60_000;
/** Older than `staleMs`, before the scenario begins. */
export const agedMs = 200_000;

function openSemaphore(ports: Ports, Name: typeof LockName, options: SemaphoreOptions = {}): PortsSemaphore {
  const world = { openPorts: async () => ports, places: new Places(), LockName: Name, watchMs: Infinity };
  return new PortsSemaphore(world, path, { staleMs, fsync: false, ...options });
}

/** Opened before the scenario begins: where the lock lies is found out once. */
async function opened(ports: Ports, Name: typeof LockName, options: SemaphoreOptions = {}): Promise<PortsSemaphore> {
  const semaphore = openSemaphore(ports, Name, options);
  await semaphore.status();
  return semaphore;
}

/** In the critical section: something that takes a step, so that the others can come in if nothing keeps them out. */
async function workInside({ ports, note }: ActorContext, ms = 0): Promise<void> {
  note("enter");
  await (ms === 0 ? ports.disk.canOpen(directory) : ports.clock.sleep(ms));
  note("leave");
}

interface ContenderOptions extends SemaphoreOptions {
  readonly machine?: string;
  readonly container?: string;
}

interface WorkerOptions extends ContenderOptions {
  readonly times?: number;
  /** How long it stays inside. Default: a step. */
  readonly insideMs?: number;
}

/** Waits until it is its turn, as often as it is told to. */
export function worker(Name: typeof LockName, { times = 1, insideMs, ...options }: WorkerOptions = {}): Actor {
  return contender(Name, options, async (context, semaphore) => {
    for (let time = 0; time < times; time++) {
      const hold = await semaphore.acquire();
      await workInside(context, insideMs);
      await hold.release();
    }
  });
}

/** Whose disk may fail: then it does not have the lock, and does not try again. */
export function unluckyWorker(Name: typeof LockName, machine: string): Actor {
  return contender(Name, { machine }, async (context, semaphore) => {
    try {
      const hold = await semaphore.acquire();
      await workInside(context);
      await hold.release();
    } catch (error) {
      if (!isHoldfastError(error, "IO_ERROR", "OUTCOME_UNKNOWN")) throw error;
      context.note("failed");
    }
  });
}

/** Goes away when somebody else has it. */
export function passerBy(Name: typeof LockName, options: ContenderOptions = {}): Actor {
  return contender(Name, options, async (context, semaphore) => {
    const hold = await semaphore.tryAcquire();
    if (hold === undefined) return;
    await workInside(context);
    await hold.release();
  });
}

function contender(
  Name: typeof LockName,
  { machine, container, ...options }: ContenderOptions,
  run: (context: ActorContext, semaphore: PortsSemaphore) => Promise<void>,
): Actor {
  return actor<PortsSemaphore>({
    ...(machine === undefined ? {} : { machine }),
    ...(container === undefined ? {} : { container }),
    prepare: ({ ports }) => opened(ports, Name, options),
    run,
  });
}

/** Holds the lock since long before the scenario begins, and lets go of it; alive, but nobody in another container can tell. */
export function agedHolder(Name: typeof LockName, comesBack: boolean): Actor {
  return actor({
    container: "old",
    prepare: async ({ ports, note }) => {
      let agoMs = agedMs;
      const clock = {
        ...ports.clock,
        wallMs: () => ports.clock.wallMs() - agoMs,
        monotonicMs: () => ports.clock.monotonicMs() - agoMs,
      };
      const semaphore = await opened({ ...ports, clock }, Name);
      const hold = await semaphore.acquire();
      agoMs = 0;
      note("enter");
      return { semaphore, hold };
    },
    run: async (context, { semaphore, hold }) => {
      // Whoever takes the lock now does what the protocol says of old locks; from here on there must be one holder again.
      context.note("leave");
      await hold.release();
      if (!comesBack) return;
      const again = await semaphore.acquire();
      await workInside(context);
      await again.release();
    },
  });
}

/** Took the lock for the process `pid`, as a command does for the script that calls it, and lets go of it for that process. */
export function helperOf(Name: typeof LockName, pid: number): Actor {
  return actor({
    prepare: async ({ ports }) => (await opened(ports, Name, { owner: { pid } })).acquire(),
    run: (_context, hold) => hold.release(),
  });
}

/** Another program that follows the protocol to the letter: exclusive create, write, unlink. */
export function foreignWorker(): Actor {
  return {
    run: async (context) => {
      const { disk, clock } = context.ports;
      const text = `pid=4711\ntimestamp=${Math.floor(clock.wallMs() / 1000)}\n`;
      for (;;) {
        try {
          await disk.createFile(path, Buffer.from(text), { sync: false });
          break;
        } catch (error) {
          if (!hasErrno(error, "EEXIST")) throw error;
          await clock.sleep(100);
        }
      }
      await workInside(context);
      await disk.unlink(path);
    },
  };
}
