// The lines of a log up to its first damage, whatever comes after that: found as `verify` finds them, because such a log cannot be opened.
import { holdfastError } from "../../errors.ts";
import type { LogMode } from "../event-store.ts";
import type { Line } from "../log/line.ts";
import type { LogPlace } from "../log/place.ts";
import { Findings } from "./findings.ts";
import { findPublished } from "./published.ts";
import { checkSegment } from "./segment-check.ts";
import { beginningOf, type Standing } from "./standing.ts";
import { findWay } from "./way.ts";

export interface GoodLine {
  readonly bytes: Uint8Array;
  readonly line: Line;
}

/** In the order of the log, those of a segment at a time. CORRUPT, after all of them, when there is damage behind them. */
export async function* goodLines(
  place: LogPlace,
  mode: LogMode,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly GoodLine[], void> {
  const findings = new Findings();
  const way = await findWay(place, await findPublished(place, mode, findings), findings);
  let standing: Standing = beginningOf(place.directory);
  for (const stop of way) {
    const lines: GoodLine[] = [];
    const onGood = (bytes: Uint8Array, line: Line): void => void lines.push({ bytes: Uint8Array.from(bytes), line });
    const checking = { place, logId: place.logId, findings, signal, onBytes: () => undefined, onGood };
    standing = await checkSegment(checking, stop, standing);
    yield lines;
    if (!standing.isGood) break;
  }
  if (!findings.hasDamage) return;
  const { path } = standing.good;
  const message = `${place.directory} is damaged behind position ${standing.good.position}, where ${path} is last good: no more than that can be read as it is (--up-to ${standing.good.position}). \`holdfast events verify\` tells what is wrong, and with --repair keeps all that is whole.`;
  throw holdfastError("CORRUPT", message, { path });
}
