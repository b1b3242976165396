// The holder of a gate, for people: a note that it writes into the lock file. No protocol depends on it.
import type { BlockingLock } from "../../common.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { decodeRecord, encodeRecord, type RecordKind } from "../../format/record.ts";
import { holderInfo } from "../liveness/holder-record.ts";
import { packageVersion } from "../../format/version.ts";
import { isKnownBoot, type Host } from "../../ports/host.ts";
import type { Ports } from "../../ports/ports.ts";

/** Every note has this length: a shorter note over a longer one would leave a mixture. */
const noteBytes = 512;
/** No release has written more. */
const fileBytesMax = 4096;

type GateHolder = Pick<Host, "pid" | "startedAtMs" | "startMark" | "bootId" | "processSpace"> & {
  readonly host: string;
  readonly version: string;
};

const gateHolderKind: RecordKind<GateHolder> = {
  kind: "gate-holder",
  decode: (value) => {
    const { host, pid, startedAtMs, startMark, bootId, processSpace, version } = objectOf(value);
    return {
      host: textOf(host),
      pid: countOf(pid),
      startedAtMs: countOf(startedAtMs),
      startMark: textOf(startMark),
      bootId: textOf(bootId),
      processSpace: textOf(processSpace),
      version: textOf(version),
    };
  },
};

/** Returns the note of this process for a lock file that it holds, or undefined if it does not fit. */
export function gateNote({ name, pid, startedAtMs, startMark, bootId, processSpace }: Host): Uint8Array | undefined {
  const holder = {
    host: name,
    pid,
    startedAtMs: wholeMs(startedAtMs),
    startMark,
    bootId,
    processSpace,
    version: packageVersion,
  };
  const record = encodeRecord(gateHolderKind, holder);
  if (record.length > noteBytes) return undefined;
  const note = new Uint8Array(noteBytes).fill(0x20);
  note.set(record);
  return note;
}

/**
 * Returns the holder of the gate according to its lock file. Returns undefined if the gate is free, if its holder is
 * known to be dead, or if the note cannot be read. Takes no lock and writes nothing.
 */
export async function findGateHolder({ disk, host }: Ports, path: string): Promise<BlockingLock | undefined> {
  const noted = await readNote();
  if (noted === undefined) return undefined;
  const { note, since } = noted;
  const { pid, startMark, bootId, processSpace, version } = note;
  const isOfOurTable = bootId === host.bootId && isKnownBoot(bootId) && processSpace === host.processSpace;
  if (isOfOurTable && host.processState(pid, startMark) === "dead") return undefined;
  const startedAt = new Date(note.startedAtMs);
  const holder = holderInfo(since, { host: note.host, pid, startedAt, version });
  return { path, mode: "exact", shared: false, holder, since };

  async function readNote(): Promise<{ note: GateHolder; since: Date } | undefined> {
    try {
      const bytes = await disk.readFile(path, fileBytesMax);
      const note = decodeRecord(gateHolderKind, bytes.subarray(0, bytes.indexOf(10) + 1), path);
      // The last change of the file was the note itself, written when the lock was granted.
      return { note, since: new Date((await disk.stat(path)).mtimeMs) };
    } catch {
      // The note is blank, foreign, of a newer release, or unreadable.
      return undefined;
    }
  }
}

/** True if the note names this very process. */
export function isThisProcess({ holder }: BlockingLock, { name, pid, startedAtMs }: Host): boolean {
  return holder.pid === pid && holder.host === name && holder.startedAt.getTime() === wholeMs(startedAtMs);
}

function wholeMs(ms: number): number {
  return Math.max(0, Math.floor(ms));
}
