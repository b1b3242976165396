// Examines a folder: runs every check once and reports what Holdfast can rely on there.
import type { Waiting } from "../common.ts";
import type { Ports } from "../ports/ports.ts";
import { runCheck, type CheckDefinition } from "./check.ts";
import { exclusiveCreate } from "./checks/exclusive-create.ts";
import { hardLink } from "./checks/hard-link.ts";
import { checkLocation } from "./checks/location.ts";
import { checkMountOptions } from "./checks/mount-options.ts";
import { caseOfNames, spellingOfNames } from "./checks/names.ts";
import { osLock } from "./checks/os-lock.ts";
import { renameReplaces, renameWhileOpen } from "./checks/rename.ts";
import { clockOffset, stampGranularity } from "./checks/stamps.ts";
import { directorySync, fileSync } from "./checks/sync.ts";
import { watchHints } from "./checks/watch.ts";
import { meetPeer } from "./peer.ts";
import { verdictOf, type DoctorCheck, type DoctorReport } from "./report.ts";
import { mustBeDirectory, withScratch } from "./scratch.ts";

/** Options of `doctor`. */
export interface DoctorOptions extends Waiting {
  /**
   * Also runs the two-machine part, with another process that examines the same directory. It proves something only
   * on another machine. Default false.
   */
  withPeer?: boolean | undefined;
  /** How long to wait for the peer to arrive. Default 60,000. */
  timeoutMs?: number | undefined;
  /** Called when the wait for the peer begins, and when the peer has arrived. */
  onPeer?: ((news: "waiting" | "met") => void) | undefined;
}

const checks: readonly CheckDefinition[] = [
  hardLink,
  exclusiveCreate,
  renameReplaces,
  renameWhileOpen,
  fileSync,
  directorySync,
  osLock,
  caseOfNames,
  spellingOfNames,
  stampGranularity,
  clockOffset,
  watchHints,
];

/**
 * Creates a directory of its own inside `directory`, removes it even after a failure, and touches nothing else.
 * Rejects only if nothing could be examined: INVALID_PATH (missing or not a directory), NO_PERMISSION (nothing can be
 * created in it), DISK_FULL, or the signal's reason.
 */
export async function examine(ports: Ports, directory: string, options: DoctorOptions = {}): Promise<DoctorReport> {
  await mustBeDirectory(ports.disk, directory);
  const own = await examineAlone(ports, directory, options.signal);
  const report = {
    directory,
    verdict: verdictOf(own.map(({ verdict }) => verdict)),
    volume: ports.disk.volume,
    checks: own,
  };
  return options.withPeer === true ? await meetPeer(ports, report, options) : report;
}

async function examineAlone(
  ports: Ports,
  directory: string,
  signal: AbortSignal | undefined,
): Promise<readonly DoctorCheck[]> {
  const { result, leftBehind } = await withScratch(ports, directory, async (scratch) => {
    const { volume } = ports.disk;
    const answers: DoctorCheck[] = [checkLocation(volume), ...checkMountOptions(volume)];
    for (const check of checks) {
      signal?.throwIfAborted();
      answers.push(await runCheck(check, { ports, scratch }));
    }
    return answers;
  });
  return leftBehind === undefined ? result : [...result, leftBehind];
}
