// What work on a log stands on: its loops and leases in this process, and its positions with their
// marks.
import { holdfastError } from "../../errors.ts";
import { Leases } from "../../part/leases.ts";
import { Loops } from "../../part/loop.ts";
import { Checkpoints, type MarkedSequence } from "../../part/progress/checkpoints.ts";
import type { LogAccess } from "../log/log-access.ts";

export class LogWork {
  readonly access: LogAccess;
  readonly loops: Loops;
  readonly leases: Leases;
  /** The mark of a position is the checksum of its line. */
  readonly sequence: MarkedSequence;

  constructor(access: LogAccess) {
    const { ports, directory } = access;
    this.access = access;
    this.loops = new Loops(ports.clock, directory);
    this.leases = new Leases(directory, async () => {
      await access.opened();
      return access.ground;
    });
    this.sequence = {
      findMark: (position) => access.findChecksum(position),
      rewound,
      mayLag: ports.disk.volume.kind !== "local",
    };
  }

  /** The checkpoints of a piece of work on this log. The log must be open. */
  async openCheckpoints(directory: string, options: { readonly remembersCutOff?: boolean } = {}): Promise<Checkpoints> {
    const { staging, id, ports } = this.access.ground;
    return await Checkpoints.open(staging, directory, {
      ...options,
      ground: id,
      bootId: ports.host.bootId,
      sequence: this.sequence,
      onSaved: () => this.loops.progressed(),
    });
  }

  async close(): Promise<void> {
    await this.loops.close();
    await this.leases.close();
  }
}

const works = new WeakMap<LogAccess, LogWork>();

/** One for each opened log. */
export function workOn(access: LogAccess): LogWork {
  const work = works.get(access) ?? new LogWork(access);
  works.set(access, work);
  return work;
}

function rewound(position: number): Error {
  const message = `The event at position ${position}, up to which this work was done, is no longer in the log: the log was restored from a backup, or replaced. What was made from it may hold what never happened; rebuild it, or begin under a new name.`;
  return holdfastError("LOG_REWOUND", message, { position });
}
