// What a child of the process runner does for its parent: it reports, and it ends when it is told
// to or is left alone.
import { writeSync } from "node:fs";

/** What the parent sends when a child shall end by itself. */
export const finishOrder = "finish";
/** What the parent sends to a child that stands still at a point. */
export const goOnOrder = "go on";

/**
 * Reports one JSON value as a line on stdout. When it returns, the line is in the pipe: a child
 * that is killed afterwards has said it. Synchronous for that reason; lines are shorter than what a
 * pipe takes in one piece, so none is ever torn.
 */
export function report(value: object): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

/**
 * Aborts when the parent wants this child to finish. A child whose parent is gone ends at once:
 * nothing else would ever end it.
 */
export function finishSignal(): AbortSignal {
  const finish = new AbortController();
  process.on("message", (message) => {
    if (message === finishOrder) finish.abort();
  });
  process.once("disconnect", () => process.exit(1));
  return finish.signal;
}

/** Resolves when the parent tells this child to go on. */
export async function goOn(): Promise<void> {
  await new Promise<void>((resolve) => {
    const hear = (message: unknown): void => {
      if (message !== goOnOrder) return;
      process.off("message", hear);
      resolve();
    };
    process.on("message", hear);
  });
}
