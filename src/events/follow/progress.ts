// Waiting until a piece of work has come to a position, whichever process does it: by looking, ever more rarely, and at once when it is done here.
import type { Cancel } from "../../common.ts";
import type { LogAccess } from "../log/log-access.ts";
import { unbegun, type Checkpoint } from "./checkpoint.ts";
import { rewound } from "./checkpoints.ts";
import type { Following } from "./following.ts";
import type { Failure } from "./loop.ts";

/** Mostly it is a matter of milliseconds; if it is not, a look costs more than it brings. */
const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;
/** Nobody sees it: it only ends a sleep. */
const woken = "woken";

export interface Progress {
  readonly following: Following;
  readonly access: LogAccess;
  /** The newest one; undefined while there is none. */
  readonly findCheckpoint: () => Promise<Checkpoint | undefined>;
  /** How the work on it has failed in this process, if it has. */
  readonly findFailure: () => Failure | undefined;
}

/**
 * RangeError for what is no position; LOG_REWOUND when what was processed is not in this log; and what the work has failed with here, when the position was not reached by
 * then: to wait for another process to do better is left to whoever knows that there is one.
 */
export async function waitUntilProcessed(position: number, progress: Progress, { signal }: Cancel = {}): Promise<void> {
  if (!(Number.isSafeInteger(position) && position >= 0))
    throw new RangeError(`A position is a whole number from 0, not ${position}.`);
  const { following, access, findFailure } = progress;
  let hint = new AbortController();
  const wake = (): void => hint.abort(woken);
  following.waiting.add(wake);
  signal?.addEventListener("abort", wake, { once: true });
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
      signal?.throwIfAborted();
      // Before the look: what happens during it ends the sleep after it.
      if (hint.signal.aborted) hint = new AbortController();
      // Before the look, too: what was reached before the failure counts.
      const failure = findFailure();
      if (await isReached(position, progress)) return;
      signal?.throwIfAborted();
      following.mustBeOpen();
      if (failure !== undefined) throw failure.error;
      await access.ports.clock.sleep(pauseMs, { signal: hint.signal }).catch(() => undefined);
    }
  } finally {
    following.waiting.delete(wake);
    signal?.removeEventListener("abort", wake);
  }
}

/** A checkpoint from before the log was restored is beyond many a position that nobody has processed. */
async function isReached(position: number, { access, findCheckpoint }: Progress): Promise<boolean> {
  const checkpoint = (await findCheckpoint()) ?? unbegun;
  if (checkpoint.position < position) return false;
  const checksum = await access.findChecksum(checkpoint.position);
  if (checksum === checkpoint.checksum) return true;
  // A share may show a checkpoint of another machine before it shows the end of the log that it was made at: the next look tells.
  if (checksum === undefined && access.ports.disk.volume.kind !== "local") return false;
  throw rewound(checkpoint.position);
}
