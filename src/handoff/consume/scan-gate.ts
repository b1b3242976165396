// The scan gate of a box: while a backup lists the tickets, a ticket that is claimed stays claimed.
// Every other move leads towards the queue, so a scan that reads the claims first, then all other
// directories, and then the claims again meets every ticket.
import { unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Box } from "../box/box.ts";

interface Scan {
  readonly id: string;
  /** The scan counts only if it takes no longer. */
  readonly ms: number;
}

const scanKind: RecordKind<Scan> = {
  kind: "scan",
  decode: (value) => {
    const { id, ms } = objectOf(value);
    return { id: textOf(id), ms: countOf(ms) };
  },
};

/** The first limit of a scan. A scan that takes longer is repeated with the double. */
const scanMs = 5_000;
/** For a record that cannot be read. */
const unknownMs = 60_000;
const pauseMs = 10;

/** True while a backup lists the tickets of this box. Only on a local disk, where the answer is certain. */
export async function isScanned({ disk, layout }: Box): Promise<boolean> {
  return disk.volume.kind === "local" && (await disk.canOpen(layout.scanRecord));
}

/**
 * Call it right after a claim, before the ticket can move on. Waits until no scan is in progress. A scan ends by itself
 * if its process dies: a claim waits for twice as long as the scan may take, by its own clock.
 */
export async function waitForScan(box: Box): Promise<void> {
  if (!(await isScanned(box))) return;
  const { clock } = box.ground.ports;
  let seen: { readonly id: string; readonly endMs: number } | undefined;
  for (; await isScanned(box); await clock.sleep(pauseMs)) {
    const { id, ms } = (await findScan(box)) ?? { id: "", ms: unknownMs };
    if (seen?.id !== id) seen = { id, endMs: clock.monotonicMs() + 2 * ms };
    if (clock.monotonicMs() > seen.endMs) await unlinkIfThere(box.disk, box.layout.scanRecord);
  }
}

/** Runs `scan` while every claim waits. On a share, where nobody waits, it just runs. */
export async function underScanGate(box: Box, scan: () => Promise<void>): Promise<void> {
  const { ground, layout, disk } = box;
  if (disk.volume.kind !== "local") return await scan();
  const { clock, random } = ground.ports;
  for (let ms = scanMs; ; ms *= 2) {
    // Another backup may list the same box.
    for (;;) {
      await waitForScan(box);
      const id = randomName(random.bytes(16));
      const startMs = clock.monotonicMs();
      const record = encodeRecord(scanKind, { id, ms });
      if (!(await putIfAbsent(ground.staging, layout.scanRecord, record, { sync: false }))) continue;
      let isWhole = false;
      try {
        await scan();
        // A process that waited for an earlier scan may have removed the record of this one by mistake.
        isWhole = (await findScan(box))?.id === id && clock.monotonicMs() - startMs <= ms;
      } finally {
        await unlinkIfThere(disk, layout.scanRecord);
      }
      if (isWhole) return;
      break;
    }
  }
}

async function findScan({ disk, layout }: Box): Promise<Scan | undefined> {
  try {
    return await findRecord(disk, scanKind, layout.scanRecord);
  } catch (error) {
    if (isUnreadable(error)) return undefined;
    throw error;
  }
}
