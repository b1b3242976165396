// Verdicts on how soon one side sees the changes of the other.
import { bad, formatMs, good, limited, type CheckAnswer } from "../check.ts";
import type { BothSides } from "./session.ts";
import { visibilityMsMax, type VisibilityDelays } from "./visibility.ts";

/** Shorter delays do not matter. */
const soonMs = 1_000;

export function judgeListing({ first, second }: BothSides<VisibilityDelays>): CheckAnswer {
  const ms = Math.max(first.listingMs, second.listingMs);
  const measured = { listingMs: ms };
  if (ms <= soonMs)
    return good(
      `A new name is listed on the other side after about ${formatMs(ms)}.`,
      "Waiters notice each other about that soon.",
      measured,
    );
  return {
    ...limited(
      `A new name is listed on the other side only after ${describeMs(ms)}.`,
      "Nothing is lost by it, but a process that waits for another machine waits that much longer.",
      "Mount with shorter times for the attribute cache (actimeo).",
    ),
    measured,
  };
}

export function judgeAbsence({ first, second }: BothSides<VisibilityDelays>): CheckAnswer {
  const ms = Math.max(first.absenceMs, second.absenceMs);
  const measured = { absenceMs: ms };
  if (ms <= soonMs)
    return good(
      ms === 0
        ? "A name that was absent is found as soon as it is there."
        : `A name that was absent is found ${formatMs(ms)} after it is there.`,
      "Holdfast never goes by an absence; other programs here can, that soon.",
      measured,
    );
  return {
    ...limited(
      `A name that was absent a moment ago is still "absent" ${describeMs(ms)} after another machine made it.`,
      "Holdfast never goes by an absence, so nothing is lost; programs that do `if it is not there, make it` are wrong here.",
      "On NFS mount with lookupcache=positive.",
    ),
    measured,
  };
}

export function judgePresence({ first, second }: BothSides<VisibilityDelays>): CheckAnswer {
  const ms = Math.max(first.presenceMs, second.presenceMs);
  const measured = { presenceMs: ms };
  if (ms === 0)
    return good(
      "A file that the other side removed can no longer be opened.",
      "An open is asked of the server, which is how Holdfast knows that a number it won still counts.",
      measured,
    );
  return {
    ...bad(
      `A file that the other side removed could still be opened for ${describeMs(ms)}.`,
      "Opens are answered from a cache. An open is how Holdfast knows that a number it won still counts: here two could win the same lock.",
      "Mount without nocto and softreval (NFS), or with closetimeo=0 and cache=strict (SMB), on both machines.",
    ),
    measured,
  };
}

export function judgeReplacement({ first, second }: BothSides<VisibilityDelays>): CheckAnswer {
  const ms = Math.max(first.replacedMs, second.replacedMs);
  const measured = { replacedMs: ms };
  if (ms <= soonMs)
    return good(
      ms === 0
        ? "A file that was replaced is read new at once."
        : `A file that was replaced is read new ${formatMs(ms)} later.`,
      "Readers of a replaced file get the new one that soon.",
      measured,
    );
  return {
    ...limited(
      `A file that was replaced was still read old ${describeMs(ms)} later.`,
      "Holdfast finds what is new by names; programs that read one file again and again see old content here.",
      "On SMB mount with closetimeo=0.",
    ),
    measured,
  };
}

function describeMs(ms: number): string {
  return ms >= visibilityMsMax ? `more than ${formatMs(visibilityMsMax)}` : formatMs(ms);
}
