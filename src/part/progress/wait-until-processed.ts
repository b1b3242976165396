// Waits until a piece of work has reached a position, whichever process does it: by polls at
// growing intervals, and at once if this process does the work.
import type { Cancel } from "../../common.ts";
import { Sleeper } from "../../ports/sleeper.ts";
import type { Failure, Loops } from "../loop.ts";
import { initialCheckpoint, type Checkpoint } from "./checkpoint.ts";
import { isSameMark, type MarkedSequence } from "./checkpoints.ts";

/** Most waits take milliseconds. A longer one gains nothing from frequent polls, and each poll costs calls. */
const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;

export interface ObservedWork {
  readonly loops: Loops;
  readonly sequence: MarkedSequence;
  /** Returns the newest checkpoint; undefined while there is none. */
  readonly findCheckpoint: () => Promise<Checkpoint | undefined>;
  /** Returns the failure of the work in this process, if any. */
  readonly findFailure: () => Failure | undefined;
}

/**
 * Throws a RangeError for an invalid position, `rewound` if the processed data no longer exists, and the failure of
 * the work in this process if that came first. Another process may succeed where this one failed, but only the caller
 * knows whether there is one.
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
      // Call it before the check: a hint during the check must end the sleep after it.
      sleeper.forgetWakeUps();
      // Read it before the check too: a position that was reached before the failure counts.
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
 * True if the position is processed. Compares its mark: a checkpoint from before a restore may lie beyond positions
 * that no process has processed.
 */
async function isReached(position: number, { sequence, findCheckpoint }: ObservedWork): Promise<boolean> {
  const checkpoint = (await findCheckpoint()) ?? initialCheckpoint;
  if (checkpoint.position < position) return false;
  const mark = await sequence.findMark(checkpoint.position);
  if (isSameMark(mark, checkpoint.checksum)) return true;
  // The position is not visible yet. The next poll decides.
  if (mark === undefined && sequence.mayLag) return false;
  throw sequence.rewound(checkpoint.position);
}
