// Reports a wait on stderr after a second, even if that is the log of a script: what the command
// waits for, which process blocks it and since when, and how the wait ends.
import { hostname } from "node:os";
import type { BlockingLock } from "../../index.ts";
import { findStoreHolder } from "../../locks/index.ts";
import { printable } from "../output.ts";
import type { Run } from "../run.ts";

/** The delay before a report. An ordinary hand-over is shorter, and is not reported. */
const unexplainedMs = 1_000;
/**
 * When the holder is first looked up. Only a process that still holds the lock after
 * `unexplainedMs` has blocked the command for long.
 */
const firstLookMs = 700;
/** How often the holder is looked up during the wait. */
const lookAgainMs = 5_000;
/** A wait for the same holder is reported again after this time. */
const repeatMs = 60_000;

/**
 * A lock that another process holds. `why`: the reason why it counts as held, if its lock file
 * states one.
 */
export type Blocking = Pick<BlockingLock, "path" | "holder" | "tag"> & {
  readonly since?: Date;
  readonly why?: string;
  /** The verb of that process. Default "holds it". */
  readonly does?: string;
};

export interface ExplainedWait<T> {
  readonly what: string;
  /** Returns the locks that block it now, except those of this process. */
  readonly findBlocking: () => Promise<readonly Blocking[]>;
  readonly wait: () => Promise<T>;
  /**
   * True if `wait` does nothing but wait: then it is reported even if no holder is known. Default
   * false: it is reported once two checks find the same holder.
   */
  readonly isCertain?: boolean;
}

/** Runs `wait` and returns its result. Explains the wait meanwhile. */
export async function explain<T>(run: Run, { wait, ...options }: ExplainedWait<T>): Promise<T> {
  if (run.output.isQuiet) return await wait();
  const explanation = new Explanation(run, options);
  try {
    return await wait();
  } finally {
    explanation.end();
  }
}

/** For waits for the store lock of a part, which every append acquires. */
export function storeLockOf(directory: string): Pick<ExplainedWait<unknown>, "what" | "findBlocking"> {
  const findBlocking = async (): Promise<Blocking[]> => {
    const holder = await findStoreHolder(directory);
    return holder === undefined ? [] : [holder];
  };
  return { what: `the turn to write in ${directory}`, findBlocking };
}

class Explanation {
  readonly #run: Run;
  readonly #options: Omit<ExplainedWait<unknown>, "wait">;
  readonly #beganMs = performance.now();
  #timer: NodeJS.Timeout;
  #isOver = false;
  #seen = "";
  #said: { readonly key: string; readonly atMs: number } | undefined;

  constructor(run: Run, options: Omit<ExplainedWait<unknown>, "wait">) {
    this.#run = run;
    this.#options = options;
    this.#timer = setTimeout(() => void this.#look(), firstLookMs);
  }

  end(): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const { findBlocking, isCertain = false } = this.#options;
    // An error is ignored: the lookup is only for people, and may fail although the wait does not.
    const found = await findBlocking().catch((): Blocking[] => []);
    if (this.#isOver) return;
    const [first] = found.filter(({ holder }) => holder.pid !== process.pid || holder.host !== hostname());
    const key = first === undefined ? "" : keyOf(first);
    const isSteady = key !== "" && key === this.#seen;
    this.#seen = key;
    const waitedMs = performance.now() - this.#beganMs;
    if (waitedMs >= unexplainedMs && (isSteady || isCertain)) this.#say(first, key);
    // After a new holder, checks again soon.
    const pauseMs = waitedMs < unexplainedMs || (key !== "" && !isSteady) ? unexplainedMs - firstLookMs : lookAgainMs;
    this.#timer = setTimeout(() => void this.#look(), pauseMs);
  }

  #say(blocking: Blocking | undefined, key: string): void {
    const nowMs = performance.now();
    if (this.#said?.key === key && nowMs - this.#said.atMs < repeatMs) return;
    this.#said = { key, atMs: nowMs };
    const { what } = this.#options;
    const waited = { for: what, waitedMs: Math.round(nowMs - this.#beganMs) };
    const { output } = this.#run;
    if (blocking === undefined) return output.waiting(waited, `waiting for ${what}`, "");
    const ends = describeEnd(blocking);
    output.waiting(
      { ...waited, blockedBy: [blocking], ends },
      `waiting for ${what}: ${describeHolder(blocking)}`,
      ends,
    );
  }
}

/**
 * Returns a key that stays equal while the same process holds the same lock and its state does not
 * change.
 */
function keyOf({ path, holder, since }: Blocking): string {
  return JSON.stringify([path, holder.pid, holder.host, holder.state, since]);
}

/**
 * Returns a text such as `process 7 on till-3 (till 3) holds it since 2026-11-18T11:00:00.000Z
 * (nightly)`.
 */
function describeHolder({ holder: { pid, host, name }, since, tag, does = "holds it" }: Blocking): string {
  const from = since === undefined ? "" : ` since ${since.toISOString()}`;
  const purpose = tag === undefined || tag === "" ? "" : ` (${printable(tag)})`;
  const named = name === undefined ? "" : ` (${printable(name)})`;
  const where = host === "" ? "" : ` on ${printable(host)}`;
  return `process ${pid}${where}${named} ${does}${from}${purpose}`;
}

/** Says when the wait ends if the holder does not release the lock. */
function describeEnd({ holder: { state, leaseMs, lastSeenAt }, why }: Blocking): string {
  if (state === "dead") return "That process is gone. The lock is taken from it, and this wait ends, within seconds.";
  if (why !== undefined)
    return `It is free when that process releases it or ends, or when its lock file is stale. Now ${printable(why)}.`;
  if (leaseMs === undefined) return "It is free when that process releases it or ends.";
  const lease = seconds(leaseMs);
  if (state === "alive")
    return `It is free when that process releases it or ends, or is silent for its lease of ${lease}.`;
  const leftMs = Math.max(0, leaseMs - (Date.now() - lastSeenAt.getTime()));
  return `That process is silent and may be gone. Its lease of ${lease} lapses in about ${seconds(leftMs)}, and this wait ends then.`;
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`;
}
