// Signals: plain channels for what happens between the calls of a program: what waits, is lost, is taken over, is
// retried or is recovered.
import { channel } from "node:diagnostics_channel";

/** The messages of all signals by the names of their channels. */
export interface SignalMessages {
  /** A caller begins to wait for a lock that another process or caller holds. */
  "holdfast:lock.waiting": LockSignal;
  /** A wait for a lock ended. */
  "holdfast:lock.waited": LockSignal & {
    /** How long the caller waited. */
    readonly waitedMs: number;
    /** False if it gave up: it timed out, or was aborted. */
    readonly acquired: boolean;
  };
  /** A lock was lost before its owner released it. Commits under it are refused. */
  "holdfast:lock.lost": LockSignal & {
    /** The id of the hold. */
    readonly id: string;
    /** LOCK_LOST, with the reason. */
    readonly error: unknown;
  };
  /** This process no longer counts as alive in a store: all its locks and claims there are lost. */
  "holdfast:process.lost": PlaceSignal & {
    /** The id of its session. */
    readonly holder: string;
    /** LOCK_LOST, with the reason. */
    readonly error: unknown;
  };
  /** This process found another one dead. Its locks, leases and claims can be taken over now. */
  "holdfast:process.dead": PlaceSignal & {
    /** The id of the dead session. */
    readonly holder: string;
    /** The machine of the dead process. */
    readonly host: string;
    /** Its process id there. */
    readonly pid: number;
  };
  /** This process took over work that one process does at a time: a consumer, a read model. */
  "holdfast:lease.taken": PlaceSignal & {
    /** The name of the work in the part, such as `consumers/mail`. */
    readonly name: string;
    /** The fencing token, which grows with each holder. */
    readonly fence: number;
  };
  /** A ticket of a dead process, or one that nobody settled, returned to the queue. */
  "holdfast:ticket.returned": TicketSignal;
  /** A claim was lost: the ticket returned to the queue while its handler was still running. */
  "holdfast:ticket.lost": TicketSignal & {
    /** CLAIM_LOST, with the reason. */
    readonly error: unknown;
  };
  /** A ticket became a dead letter. */
  "holdfast:ticket.dead": TicketSignal & {
    /** How its last attempt ended. */
    readonly outcome: string;
    /** Why, in words. */
    readonly reason: string;
  };
  /** A committed change of a process that died was completed. */
  "holdfast:change.recovered": PlaceSignal & {
    /** The id of the change. */
    readonly id: string;
  };
  /** A log was continued behind the lines that a dead writer left. Whole lines were kept. */
  "holdfast:log.recovered": PlaceSignal & {
    /** How many lines were kept. */
    readonly lines: number;
  };
  /** An operation on the disk or in the database is repeated after a failure that may pass. */
  "holdfast:retry": PlaceSignal & {
    /** Number of the attempt that failed, from 1. */
    readonly attempt: number;
    /** Its error. */
    readonly error: unknown;
  };
}

/** Where it happened: in a part, in a ground, or in a database. */
export interface PlaceSignal {
  /** The directory, or the location in a database without the password. */
  readonly location: string;
}

/** The lock that a message of a diagnostics channel is about. */
export interface LockSignal extends PlaceSignal {
  /** The paths that are locked or wanted. */
  readonly path: string;
}

/** The attempt at a ticket that a signal reports. */
export interface TicketSignal extends PlaceSignal {
  /** The id of the ticket. */
  readonly id: string;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
}

/** The name of a signal, which is that of its channel. */
export type SignalName = keyof SignalMessages;

const all: Readonly<Record<SignalName, true>> = {
  "holdfast:lock.waiting": true,
  "holdfast:lock.waited": true,
  "holdfast:lock.lost": true,
  "holdfast:process.lost": true,
  "holdfast:process.dead": true,
  "holdfast:lease.taken": true,
  "holdfast:ticket.returned": true,
  "holdfast:ticket.lost": true,
  "holdfast:ticket.dead": true,
  "holdfast:change.recovered": true,
  "holdfast:log.recovered": true,
  "holdfast:retry": true,
};

/** The names of the diagnostics channels that publish what is not an operation. */
export const signalNames = Object.keys(all) as readonly SignalName[];

/** Publishes a signal. `describe` is called only if somebody listens. */
export function signal<Name extends SignalName>(name: Name, describe: () => SignalMessages[Name]): void {
  const found = channel(name);
  if (found.hasSubscribers) found.publish(describe());
}
