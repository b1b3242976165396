// The base of all work on a log: loops and leases of this process, and positions with their marks.
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
    this.leases = new Leases(directory, () => access.openLeaseGround());
    this.sequence = {
      findMark: (position) => access.findChecksum(position),
      rewound,
      mayLag: access.mayLag,
    };
  }

  /** Opens the checkpoints of a consumer or read model of this log. The log must be open. */
  async openCheckpoints(directory: string, options: { readonly remembersCutOff?: boolean } = {}): Promise<Checkpoints> {
    const { ground } = this.access;
    return await Checkpoints.open(ground, directory, {
      ...options,
      ground: ground.id,
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

/** Returns the instance of an opened log. */
export function workOn(access: LogAccess): LogWork {
  const work = works.get(access) ?? new LogWork(access);
  works.set(access, work);
  return work;
}

function rewound(position: number): Error {
  const message = `The event at position ${position}, up to which this work was done, is no longer in the log: the log was restored from a backup, or replaced. Data derived from it may include events that no longer exist; rebuild it, or start under a new name.`;
  return holdfastError("LOG_REWOUND", message, { position });
}
