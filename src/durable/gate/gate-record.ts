// The kind of gate that guards a directory. It is decided once, recorded in the directory, and binds every process on
// every machine.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { objectOf, textOf, wordOf } from "../../format/decoding.ts";
import { makeId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Ports } from "../../ports/ports.ts";
import { Gate } from "./gate.ts";
import { decideRecord, findDecision } from "../publish/record-file.ts";
import type { Staging } from "../publish/staging.ts";

/**
 * `os`: an OS lock, for directories that one machine uses. `table`: a lock in the ground's table,
 * which holds between machines.
 */
export type GateKind = "os" | "table";

export interface GateRecord {
  readonly id: string;
  readonly gate: GateKind;
  /**
   * The directory of the ground whose table has the lock, relative to this directory. Absent: the gate has its own
   * ground.
   */
  readonly ground?: string;
}

const gateRecordKind: RecordKind<GateRecord> = {
  kind: "gate",
  decode: (value) => {
    const { id, gate, ground } = objectOf(value);
    return {
      id: textOf(id),
      gate: wordOf(gate, ["os", "table"]),
      ...(ground === undefined ? {} : { ground: textOf(ground) }),
    };
  },
};

/**
 * Opens the OS gate of a directory whose recorded kind is `os`. Throws UNSUPPORTED_DISK if such a lock may not
 * exclude all processes. There is no fallback: processes with two kinds of gates do not exclude each other.
 */
export async function openOsGate(ports: Ports, directory: string): Promise<Gate> {
  const { kind, type } = ports.disk.volume;
  if (kind !== "local") {
    const why = `is guarded by an OS lock, and ${type} is not known to be local: such a lock may not hold between machines`;
    throw unusable(directory, "a local disk", why);
  }
  return await Gate.open(ports, { lockPath: lockPathOf(directory), turnstilePath: `${directory}/.store.next` });
}

/**
 * Opens the gate of `directory` if it is an OS lock. Throws UNSUPPORTED_DISK if it is a lock in a table:
 * `openStoreLock` of "holdfast/locks" opens that.
 */
export async function openGate(ports: Ports, staging: Staging, directory: string): Promise<Gate> {
  if ((await decideGate(ports, staging, directory)).gate === "os") return await openOsGate(ports, directory);
  const why = "is guarded by the lock table, because its file system is not known to be local; use openStoreLock";
  throw unusable(directory, "a gate between machines", why);
}

/** Returns the record of a gate, if its kind was decided. */
export async function findGate({ disk }: Ports, directory: string): Promise<GateRecord | undefined> {
  return await findDecision(disk, gateRecordKind, recordOf(directory));
}

/** Returns the recorded kind, if it was decided. */
export async function findGateKind(ports: Ports, directory: string): Promise<GateKind | undefined> {
  return (await findGate(ports, directory))?.gate;
}

/**
 * Returns the record, and decides it if there is none: `os` only if the file system is known to be local. A new
 * record refers to `ground`.
 */
export async function decideGate(
  ports: Ports,
  staging: Staging,
  directory: string,
  ground: Pick<GateRecord, "ground"> = {},
): Promise<GateRecord> {
  const recorded = await findGate(ports, directory);
  if (recorded !== undefined) return recorded;
  const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
  const gate: GateKind = (await hasTrustworthyOsLocks(ports, directory)) ? "os" : "table";
  return await decideRecord(staging, gateRecordKind, recordOf(directory), { id, gate, ...ground });
}

/**
 * Returns true only for a file system that is known to be local: any other may be used by other machines too, and a
 * test in one kernel proves nothing about them.
 */
async function hasTrustworthyOsLocks({ disk, osLock }: Ports, directory: string): Promise<boolean> {
  if (disk.volume.kind !== "local") return false;
  try {
    await (await osLock.open(lockPathOf(directory))).close();
    return true;
  } catch (error) {
    // The native module is missing. That is a fault of this installation, so throw: the decision would bind all
    // others.
    if (isHoldfastError(error, "UNSUPPORTED_DISK") && error.missing.includes("OS lock")) return false;
    throw error;
  }
}

/** The name of a gate's lock file, in the directory that it guards. */
export const storeLockName = ".store.lock";

export function lockPathOf(directory: string): string {
  return `${directory}/${storeLockName}`;
}

function recordOf(directory: string): string {
  return `${directory}/gate.json`;
}

function unusable(path: string, missing: string, why: string): Error {
  return holdfastError("UNSUPPORTED_DISK", `${path} ${why}. Nothing was written.`, { path, missing: [missing] });
}
