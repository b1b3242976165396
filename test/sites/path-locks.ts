// Path locks on a directory of the real disk, opened as often as a test wants: each opening is a
// holder of its own.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path/posix";
import { Ground } from "../../src/durable/liveness/ground.ts";
import { TablePathLocks } from "../../src/locks/path/table-path-locks.ts";
import { openNodePorts } from "../../src/ports/node/ports.ts";
import type { Disk } from "../../src/ports/disk.ts";
import type { Ports } from "../../src/ports/ports.ts";
import { asHoldfastWrites } from "./scratch.ts";
import { changedDisk } from "./disks.ts";
import { WaitCounter } from "../waiting.ts";

export interface OpenOptions {
  readonly leaseMs?: number;
  readonly timeoutMs?: number;
  readonly slotsPerEpoch?: number;
  /** Changes the ports that this holder gets. */
  readonly tamper?: (ports: Ports) => Ports;
  /** The end of the world does not close it. */
  readonly isClosedByItself?: boolean;
}

/** Ports whose disk does some things in another way. */
export function withDisk(change: (disk: Disk) => Partial<Disk>): (ports: Ports) => Ports {
  return (ports) => ({ ...ports, disk: changedDisk(ports.disk, change) });
}

export class LocksWorld {
  readonly root: string;
  readonly #opened: TablePathLocks[] = [];
  readonly #waits = new WaitCounter();

  private constructor(root: string) {
    this.root = root;
  }

  /** How many callers wait with a timeout, in the queue of their process or in the table. */
  get waiting(): number {
    return this.#waits.count;
  }

  static async make(): Promise<LocksWorld> {
    return new LocksWorld(asHoldfastWrites(await mkdtemp(join(tmpdir(), "holdfast-locks-"))));
  }

  async open({
    leaseMs = 30_000,
    tamper = (ports) => ports,
    isClosedByItself = false,
    ...options
  }: OpenOptions = {}): Promise<TablePathLocks> {
    const ports = this.#waits.on(tamper(await openNodePorts(this.root)));
    const ground = await Ground.open(ports, `${this.root}/.holdfast`, { leaseMs });
    const locks = await TablePathLocks.open(ground, { root: this.root, ownsGround: true, ...options });
    if (!isClosedByItself) this.#opened.push(locks);
    return locks;
  }

  async end(): Promise<void> {
    for (const locks of this.#opened) await locks.close().catch(() => undefined);
    // Those that were left as if they had died have files open, and an NFS client keeps what is
    // open.
    await rm(this.root, { recursive: true, force: true }).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY") throw error;
    });
  }
}
