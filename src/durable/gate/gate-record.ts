// Which kind of gate guards a directory: decided once, recorded in the directory, and binding for
// every process of every machine.
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
  /** Of the ground whose table has the lock, relative to the directory. Absent: the gate has its own. */
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
 * The OS gate of a directory whose recorded kind is `os`. UNSUPPORTED_DISK where such a lock may
 * not hold. There is no fallback: processes with two kinds of gates do not exclude each other.
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
 * The gate of `directory`, where it is an OS lock. UNSUPPORTED_DISK where it is a lock in a table:
 * that one is opened by `openStoreLock` of "holdfast/locks".
 */
export async function openGate(ports: Ports, staging: Staging, directory: string): Promise<Gate> {
  if ((await decideGate(ports, staging, directory)).gate === "os") return await openOsGate(ports, directory);
  const why = "is guarded by the lock table, because its file system is not known to be local; use openStoreLock";
  throw unusable(directory, "a gate between machines", why);
}

/** The record of a gate, if its kind was decided. */
export async function findGate({ disk }: Ports, directory: string): Promise<GateRecord | undefined> {
  return await findDecision(disk, gateRecordKind, recordOf(directory));
}

/** The recorded kind, if it was decided. */
export async function findGateKind(ports: Ports, directory: string): Promise<GateKind | undefined> {
  return (await findGate(ports, directory))?.gate;
}

/**
 * The record; decides it when there is none: `os` only where the file system is known to be local.
 * `ground` is what a new record says of the ground.
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
 * A file system that is not known to be local may be another machine's too, and a test in one
 * kernel proves nothing about that.
 */
async function hasTrustworthyOsLocks({ disk, osLock }: Ports, directory: string): Promise<boolean> {
  if (disk.volume.kind !== "local") return false;
  try {
    await (await osLock.open(lockPathOf(directory))).close();
    return true;
  } catch (error) {
    // A missing module is a fault of this installation, and the decision binds all others.
    if (isHoldfastError(error, "UNSUPPORTED_DISK") && error.missing.includes("OS lock")) return false;
    throw error;
  }
}

export function lockPathOf(directory: string): string {
  return `${directory}/.store.lock`;
}

function recordOf(directory: string): string {
  return `${directory}/gate.json`;
}

function unusable(path: string, missing: string, why: string): Error {
  return holdfastError("UNSUPPORTED_DISK", `${path} ${why}. Nothing was written.`, { path, missing: [missing] });
}
