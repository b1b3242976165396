// Waiting until a piece of work has come to a position, whichever process does it: by looking, ever more rarely, and at once when it is done here.
import type { Cancel } from "../../common.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Following } from "./following.ts";

/** Mostly it is a matter of milliseconds; if it is not, a look costs more than it brings. */
const firstPauseMs = 4;
const pauseMsMax = 250;
const growth = 1.4;
/** Nobody sees it: it only ends a sleep. */
const woken = "woken";

export async function waitUntil(
  following: Following,
  { clock }: Pick<Ports, "clock">,
  isReached: () => Promise<boolean>,
  { signal }: Cancel = {},
): Promise<void> {
  let hint = new AbortController();
  const wake = (): void => hint.abort(woken);
  following.waiting.add(wake);
  signal?.addEventListener("abort", wake, { once: true });
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMsMax, pauseMs * growth)) {
      signal?.throwIfAborted();
      // Before the look: what happens during it ends the sleep after it.
      if (hint.signal.aborted) hint = new AbortController();
      if (await isReached()) return;
      signal?.throwIfAborted();
      following.mustBeOpen();
      await clock.sleep(pauseMs, { signal: hint.signal }).catch(() => undefined);
    }
  } finally {
    following.waiting.delete(wake);
    signal?.removeEventListener("abort", wake);
  }
}
