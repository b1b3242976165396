// Waiting until a piece of work has come to a position, whichever process does it: by polls that
// get rarer, and at once when this process does the work.
import type { Cancel } from "../../common.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Failure, Loops } from "../loop.ts";
import { unbegun, type Checkpoint } from "./checkpoint.ts";
import type { MarkedSequence } from "./checkpoints.ts";

/**
 * Most waits take milliseconds. A longer one gains nothing from frequent looks, and each look costs
 * calls.
 */
const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;

export interface ObservedWork {
  readonly loops: Loops;
  readonly sequence: MarkedSequence;
  /** The newest checkpoint; undefined while there is none. */
  readonly findCheckpoint: () => Promise<Checkpoint | undefined>;
  /** How the work has failed in this process, if it has. */
  readonly findFailure: () => Failure | undefined;
}

/**
 * RangeError for a position that is none; `rewound` when what was processed is no longer there; the
 * failure of the work in this process, if that came before the position. Another process may do
 * better, and only the caller knows if there is one.
 */
export async function waitUntilProcessed(position: number, work: ObservedWork, { signal }: Cancel = {}): Promise<void> {
  if (!(Number.isSafeInteger(position) && position >= 0))
    throw new RangeError(`A position is a whole number from 0, not ${position}.`);
  const { loops, findFailure } = work;
  const sleeper = new Sleeper(loops.clock);
  const stopListening = loops.onProgress(sleeper.wake);
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
      signal?.throwIfAborted();
      // Before the look: a hint that comes during the look ends the sleep after it.
      sleeper.forgetWakeUps();
      // Before the look, too: a position that was reached before the failure counts.
      const failure = findFailure();
      if (await isReached(position, work)) return;
      signal?.throwIfAborted();
      loops.mustBeOpen();
      if (failure !== undefined) throw failure.error;
      await sleeper.sleep(pauseMs, signal);
    }
  } finally {
    stopListening();
  }
}

/**
 * The mark is compared: a checkpoint from before a restore is beyond positions that no process has
 * worked on.
 */
async function isReached(position: number, { sequence, findCheckpoint }: ObservedWork): Promise<boolean> {
  const checkpoint = (await findCheckpoint()) ?? unbegun;
  if (checkpoint.position < position) return false;
  const mark = await sequence.findMark(checkpoint.position);
  if (mark === checkpoint.checksum) return true;
  // Not visible yet: the next look tells.
  if (mark === undefined && sequence.mayLag) return false;
  throw sequence.rewound(checkpoint.position);
}
