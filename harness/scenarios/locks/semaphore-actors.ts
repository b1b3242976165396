// The simulated processes of the semaphore's scenarios: waiters, processes that try once, holders
// of old locks, and programs that know only the protocol.
import { isHoldfastError } from "../../../src/errors.ts";
import type { SemaphoreProtocol } from "../../../src/locks/semaphore/protocol.ts";
import type { SemaphoreOptions } from "../../../src/locks/semaphore/options.ts";
import { InProcessLocks } from "../../../src/locks/semaphore/in-process.ts";
import { PortsSemaphore } from "../../../src/locks/semaphore/semaphore.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, type Actor, type ActorContext } from "../../../src/testing/explorer/scenario.ts";

export const directory = "/store";
export const path: string = `${directory}/job.lock`;
const staleMs = 60_000;
/** The age of a lock that was older than `staleMs` before the scenario began. */
export const agedMs = 200_000;

function openSemaphore(
  ports: Ports,
  Protocol: typeof SemaphoreProtocol,
  options: SemaphoreOptions = {},
): PortsSemaphore {
  const world = { openPorts: async () => ports, inProcess: new InProcessLocks(), Protocol, watchMs: Infinity };
  return new PortsSemaphore(world, path, { staleMs, fsync: false, ...options });
}

/** Opens the semaphore before the scenario begins, so that its path is already resolved. */
async function opened(
  ports: Ports,
  Protocol: typeof SemaphoreProtocol,
  options: SemaphoreOptions = {},
): Promise<PortsSemaphore> {
  const semaphore = openSemaphore(ports, Protocol, options);
  await semaphore.status();
  return semaphore;
}

/** Takes a step in the critical section, so that another process can enter if nothing excludes it. */
async function workInside({ ports, note }: ActorContext): Promise<void> {
  note("enter");
  await ports.disk.canOpen(directory);
  note("leave");
}

interface ContenderOptions extends SemaphoreOptions {
  readonly machine?: string;
  readonly container?: string;
}

interface WorkerOptions extends ContenderOptions {
  readonly times?: number;
}

/** Waits for the lock `times` times. */
export function worker(Protocol: typeof SemaphoreProtocol, { times = 1, ...options }: WorkerOptions = {}): Actor {
  return contender(Protocol, options, async (context, semaphore) => {
    for (let time = 0; time < times; time++) {
      const hold = await semaphore.acquire();
      await workInside(context);
      await hold.release();
    }
  });
}

/** Its disk may fail. It then does not hold the lock, and does not try again. */
export function unluckyWorker(Protocol: typeof SemaphoreProtocol, machine: string): Actor {
  return contender(Protocol, { machine }, async (context, semaphore) => {
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

/** Gives up when another process holds the lock. */
export function passerBy(Protocol: typeof SemaphoreProtocol, options: ContenderOptions = {}): Actor {
  return contender(Protocol, options, async (context, semaphore) => {
    const hold = await semaphore.tryAcquire();
    if (hold === undefined) return;
    await workInside(context);
    await hold.release();
  });
}

/** Like `passerBy`, but keeps the lock. It may start later than the others. */
export function keeper(
  Protocol: typeof SemaphoreProtocol,
  { afterMs = 0, ...options }: ContenderOptions & { readonly afterMs?: number } = {},
): Actor {
  return contender(Protocol, options, async ({ note, ports }, semaphore) => {
    if (afterMs > 0) await ports.clock.sleep(afterMs);
    if ((await semaphore.tryAcquire()) !== undefined) note("enter");
  });
}

function contender(
  Protocol: typeof SemaphoreProtocol,
  { machine, container, ...options }: ContenderOptions,
  run: (context: ActorContext, semaphore: PortsSemaphore) => Promise<void>,
): Actor {
  return actor<PortsSemaphore>({
    ...(machine === undefined ? {} : { machine }),
    ...(container === undefined ? {} : { container }),
    prepare: ({ ports }) => opened(ports, Protocol, options),
    run,
  });
}

/**
 * Has held the lock since long before the scenario, and releases it. It is alive, but no process in another container
 * can tell.
 */
export function agedHolder(Protocol: typeof SemaphoreProtocol, comesBack: boolean): Actor {
  return actor({
    container: "old",
    prepare: async ({ ports, note }) => {
      let agoMs = agedMs;
      const clock = {
        ...ports.clock,
        wallMs: () => ports.clock.wallMs() - agoMs,
        monotonicMs: () => ports.clock.monotonicMs() - agoMs,
      };
      const semaphore = await opened({ ...ports, clock }, Protocol);
      const hold = await semaphore.acquire();
      agoMs = 0;
      note("enter");
      return { semaphore, hold };
    },
    run: async (context, { semaphore, hold }) => {
      // A taker follows the protocol's rule for old locks. From here on there must again be only one holder.
      context.note("leave");
      await hold.release();
      if (!comesBack) return;
      const again = await semaphore.acquire();
      await workInside(context);
      await again.release();
    },
  });
}

/** Acquired the lock for the process `pid`, as a command does for its script, and releases it for that process. */
export function helperOf(Protocol: typeof SemaphoreProtocol, pid: number): Actor {
  return actor({
    prepare: async ({ ports }) => (await opened(ports, Protocol, { owner: { pid } })).acquire(),
    run: (_context, hold) => hold.release(),
  });
}

/** Another program that follows the protocol to the letter: exclusive create, write, unlink. */
export function foreignWorker(): Actor {
  return {
    run: async (context) => {
      const { disk, clock } = context.ports;
      const text = `pid=4711\ntimestamp=${Math.floor(clock.wallMs() / 1000)}\n`;
      while (!(await succeeds("EEXIST", () => disk.createFile(path, Buffer.from(text), { sync: false }))))
        await clock.sleep(100);
      await workInside(context);
      await disk.unlink(path);
    },
  };
}

/**
 * Another program that takes over exactly as the protocol says: it removes whatever lock exists now, because the lock
 * it has read was stale, then creates and keeps its own. It removes by renaming to a name of its own, which looks like
 * an unlink, and checks what it renamed. "Robbed" is the case that the protocol itself cannot prevent.
 */
export function foreignTaker(): Actor {
  return {
    run: async ({ ports, note }) => {
      const { disk, clock } = ports;
      const record = Buffer.from(`pid=4712\ntimestamp=${Math.floor(clock.wallMs() / 1000)}\n`);
      const create = (): Promise<boolean> => succeeds("EEXIST", () => disk.createFile(path, record, { sync: false }));
      if (await create()) return note("enter");
      const text = await readText(disk, path);
      const timestamp = /^timestamp=(\d+)$/m.exec(text)?.[1];
      if (timestamp === undefined || clock.wallMs() - Number(timestamp) * 1000 <= staleMs) return;
      await removeFor(ports, note, text);
      if (await create()) note("enter");
    },
  };
}

/**
 * The same at the most critical moment: it has read the stale lock before the scenario begins, and creates its lock in
 * one step.
 */
export function lateForeignTaker(): Actor {
  const own = `${directory}/shell`;
  return actor<string>({
    prepare: async ({ ports: { disk, clock } }) => {
      const record = `pid=4712\ntimestamp=${Math.floor(clock.wallMs() / 1000)}\n`;
      await disk.createFile(own, Buffer.from(record), { sync: false });
      return await readText(disk, path);
    },
    run: async ({ ports, note }, text) => {
      await removeFor(ports, note, text);
      if (await succeeds("EEXIST", () => ports.disk.link(own, path))) note("enter");
    },
  });
}

async function removeFor({ disk }: Ports, note: ActorContext["note"], text: string): Promise<void> {
  note("removes");
  const isDone = await succeeds("ENOENT", () => disk.rename(path, `${path}.removed`));
  note(isDone && (await readText(disk, `${path}.removed`)) !== text ? "robbed" : "removed");
}

async function succeeds(errno: string, action: () => Promise<void>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    if (!hasErrno(error, errno)) throw error;
    return false;
  }
}

async function readText(disk: Disk, file: string): Promise<string> {
  try {
    return Buffer.from(await disk.readFile(file, 1000)).toString();
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
    return "";
  }
}
