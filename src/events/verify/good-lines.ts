// The lines of a log up to its first damage, whatever comes after that: found as `verify` finds them, because such a log cannot be opened.
import { holdfastError } from "../../errors.ts";
import type { LogMode } from "../model/event-store.ts";
import type { Line } from "../log/format/line.ts";
import type { LogFiles } from "../log/log-files.ts";
import { Findings } from "../../part/findings.ts";
import { findPublished } from "./published.ts";
import { checkSegment } from "./segment-check.ts";
import { beginningOf, type CheckpointState } from "./checkpoint-check.ts";
import { findWay } from "./segment-order.ts";

export interface GoodLine {
  readonly bytes: Uint8Array;
  readonly line: Line;
}

/** In the order of the log, those of a segment at a time. CORRUPT, after all of them, when there is damage behind them. */
export async function* goodLines(
  place: LogFiles,
  mode: LogMode,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly GoodLine[], void> {
  const findings = new Findings();
  const way = await findWay(place, await findPublished(place, mode, findings), findings);
  let standing: CheckpointState = beginningOf(place.directory);
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
