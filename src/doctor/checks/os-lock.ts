// Checks if an OS lock excludes a second descriptor; the gate of a local directory relies on it.
import { isHoldfastError } from "../../errors.ts";
import type { OsLockFile } from "../../ports/os-lock.ts";
import { good, limited, type CheckAnswer, type CheckDefinition, type CheckContext } from "../check.ts";

export const osLock: CheckDefinition = {
  id: "os-lock",
  question: "Does an OS lock keep out a second holder?",
  isVital: false,
  ask,
};

const tableGate =
  "This folder must be guarded by Holdfast's own lock table (gate `table`), which is slower and safe; OS locks (gate `os`) would keep no process out.";
const courtesy =
  "On a share an OS lock can be lost without a word when the connection breaks, so it is a courtesy and never what safety rests on: Holdfast guards the folder by its own lock table (gate `table`).";

async function ask({ ports, scratch }: CheckContext): Promise<CheckAnswer> {
  const opened: OsLockFile[] = [];
  const open = async (): Promise<OsLockFile> => {
    const lock = await ports.osLock.open(`${scratch}/os-lock`);
    opened.push(lock);
    return lock;
  };
  try {
    return await compare(await open(), await open(), ports.disk.volume.kind === "local");
  } catch (error) {
    if (!isHoldfastError(error, "UNSUPPORTED_DISK")) throw error;
    return limited(
      `There are no OS locks: ${error.message}.`,
      tableGate,
      "Install fs-native-extensions with a binary for this platform, on every machine that shares the folder, or leave it so.",
    );
  } finally {
    for (const lock of opened) await lock.close();
  }
}

async function compare(first: OsLockFile, second: OsLockFile, isLocal: boolean): Promise<CheckAnswer> {
  if (!(await first.tryLock())) return limited("A free OS lock cannot be taken.", tableGate);
  if (await second.tryLock()) return limited("Two holders got the same OS lock at once.", tableGate);
  await first.unlock();
  if (!(await second.tryLock())) return limited("An OS lock stays taken after its holder gave it up.", tableGate);
  if (isLocal)
    return good(
      "An OS lock keeps out a second holder, and lets it in when the first one leaves.",
      "Processes of this machine take turns by an OS lock, which a killed process gives up at once.",
    );
  return limited(
    "An OS lock keeps out a second holder on this machine; one machine alone cannot show more.",
    courtesy,
    "`holdfast doctor DIR --with-peer` on two machines shows whether it excludes between them.",
  );
}
