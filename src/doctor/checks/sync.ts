// Checks that files and directories can be fsynced: an acknowledged write must survive a power cut.
import {
  bad,
  bytesOf,
  failureOf,
  findText,
  good,
  type CheckAnswer,
  type CheckDefinition,
  type CheckContext,
} from "../check.ts";

export const fileSync: CheckDefinition = {
  id: "file-sync",
  question: "Can a file be synced to the disk?",
  isVital: true,
  ask: askFile,
};

export const directorySync: CheckDefinition = {
  id: "directory-sync",
  question: "Can a directory be synced, so that new names survive a power cut?",
  isVital: true,
  ask: askDirectory,
};

async function askFile(context: CheckContext): Promise<CheckAnswer> {
  const path = `${context.scratch}/sync-file`;
  const file = await context.ports.disk.open(path, "create");
  let refusal: string | undefined;
  try {
    await file.write(0, bytesOf("synced"));
    refusal = await failureOf(() => file.sync());
  } finally {
    await file.close();
  }
  if (refusal !== undefined || (await findText(context, path)) !== "synced")
    return bad(
      refusal === undefined ? "A synced file has lost its content." : `Syncing a file fails (${refusal}).`,
      "Holdfast acknowledges a write only after its sync, so here it would acknowledge nothing.",
      "Use another file system, or mend the disk: the system's log tells more.",
    );
  return good(
    "A written file can be synced.",
    "Acknowledged writes were handed to the disk, as far as a program can tell.",
  );
}

async function askDirectory({ ports, scratch }: CheckContext): Promise<CheckAnswer> {
  const refusal = await failureOf(() => ports.disk.syncDirectory(scratch));
  if (refusal !== undefined)
    return bad(
      `Syncing a directory fails (${refusal}).`,
      "A power cut can take back the name of a file that was written and synced just before, so here Holdfast would acknowledge nothing.",
      "Use a file system that syncs directories.",
    );
  // The port does nothing there, so its success proves nothing.
  if (isWindowsPath(scratch))
    return good(
      "Windows has no call to sync a directory.",
      "NTFS journals new names in order, so they survive as far as it goes.",
    );
  if (ports.disk.volume.kind === "network")
    return good(
      "A directory can be synced.",
      "On a share the server decides: NFS and SMB servers make names durable by themselves.",
    );
  return good("A directory can be synced.", "A name that is acknowledged survives a power cut.");
}

/** `C:/…` or `//server/share/…`: the disk port uses forward slashes on every platform. */
function isWindowsPath(path: string): boolean {
  return /^([a-z]:|\/\/)/i.test(path);
}
