// A wait that a person at a terminal is told about: what for, and which process is in the way.
import type { HolderInfo } from "../../index.ts";
import { printable } from "../output.ts";
import type { Run } from "../run.ts";

/** Long enough that an ordinary hand-over is not worth a line. */
const unexplainedMs = 1_000;

export interface ExplainedWait<T> {
  readonly what: string;
  /** In words: "process 7 on till-3, since …". Undefined when that cannot be told. */
  readonly findHolder: () => Promise<string | undefined>;
  readonly wait: () => Promise<T>;
}

export async function explain<T>(run: Run, { what, findHolder, wait }: ExplainedWait<T>): Promise<T> {
  if (!run.output.isWatched) return await wait();
  let isOver = false;
  const timer = setTimeout(() => {
    // The look may fail where the wait does not: it is for people only.
    void findHolder()
      .catch(() => undefined)
      .then((holder) => {
        if (!isOver)
          run.output.note(`holdfast: waiting for ${what}${holder === undefined ? "" : `, held by ${holder}`}`);
      });
  }, unexplainedMs);
  try {
    return await wait();
  } finally {
    isOver = true;
    clearTimeout(timer);
  }
}

export function describeHolder(
  { pid, host }: Pick<HolderInfo, "pid" | "host">,
  since: Date,
  tag: string | undefined,
): string {
  const purpose = tag === undefined || tag === "" ? "" : ` (${printable(tag)})`;
  return `process ${pid} on ${printable(host)} since ${since.toISOString()}${purpose}`;
}
