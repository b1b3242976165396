// Checks if changes send hints, or must be polled for.
import {
  bytesOf,
  formatMs,
  good,
  limited,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";

export const watchHints: CheckDefinition = {
  id: "watch",
  question: "Does a hint arrive when something changes?",
  isVital: false,
  ask,
};

const hintMsMax = 1_000;
const lookEveryMs = 10;

const meaningWhenSilent =
  "A process that waits looks again and again instead of being woken: nothing is missed, it is noticed later.";

async function ask({ ports, scratch }: CheckContext): Promise<CheckAnswer> {
  if (ports.disk.volume.kind === "network")
    return limited("On a share no hint comes for what another machine did.", meaningWhenSilent);
  const waitedMs = await measureHintMs({ ports, scratch });
  if (waitedMs === undefined)
    return limited(
      `No hint came within ${formatMs(hintMsMax)}.`,
      meaningWhenSilent,
      "Raise the limit of watches (`fs.inotify.max_user_watches`) if it is used up.",
    );
  if (ports.disk.volume.kind === "unknown")
    return limited(
      "A hint comes for what this machine did; whether one comes for another is not known.",
      meaningWhenSilent,
    );
  return good("A hint comes for a change.", "A process that waits is woken at once.", { hintMs: Math.round(waitedMs) });
}

async function measureHintMs({ ports, scratch }: CheckContext): Promise<number | undefined> {
  const { clock, disk, watch } = ports;
  let hinted = false;
  const stop = watch.start(scratch, () => (hinted = true));
  try {
    const startedMs = clock.monotonicMs();
    await disk.createFile(`${scratch}/watched`, bytesOf("watched"), { sync: false });
    while (!hinted && clock.monotonicMs() - startedMs < hintMsMax) await clock.sleep(lookEveryMs);
    return hinted ? clock.monotonicMs() - startedMs : undefined;
  } finally {
    stop();
  }
}
