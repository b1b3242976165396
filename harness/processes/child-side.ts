// The child's side of the process runner: a child reports to its parent, and ends when the parent tells it to or dies.
import { writeSync } from "node:fs";

/** The message by which the parent tells a child to finish. */
export const finishOrder = "finish";
/** The message by which the parent tells a waiting child to continue. */
export const goOnOrder = "go on";

/**
 * Reports one JSON value as a line on stdout. The write is synchronous: when this returns, the line is in the pipe,
 * even if the child is killed afterwards. Lines are short enough for one atomic pipe write, so none is ever torn.
 */
export function report(value: object): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}

/**
 * Aborts when the parent wants this child to finish. If the parent dies, the child ends at once: nothing else would
 * ever end it.
 */
export function finishSignal(): AbortSignal {
  const finish = new AbortController();
  process.on("message", (message) => {
    if (message === finishOrder) finish.abort();
  });
  process.once("disconnect", () => process.exit(1));
  return finish.signal;
}

/** Resolves when the parent tells this child to continue. */
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
