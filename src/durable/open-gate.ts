// Which kind of gate guards a directory: decided once, recorded in the directory, and binding for every process of every machine.
import { holdfastError, isHoldfastError } from "../errors.ts";
import { objectOf, textOf, wordOf } from "../format/decoding.ts";
import { makeId } from "../format/id.ts";
import type { RecordKind } from "../format/record.ts";
import type { Ports } from "../ports/ports.ts";
import { Gate } from "./gate.ts";
import { decideRecord, findDecision } from "./record-file.ts";
import type { Staging } from "./staging.ts";

/** `os`: an OS lock, for directories that one machine uses. `table`: a lock in the ground's table, which holds between machines. */
export type GateKind = "os" | "table";

interface GateRecord {
  readonly id: string;
  readonly gate: GateKind;
}

const gateRecordKind: RecordKind<GateRecord> = {
  kind: "gate",
  decode: (value) => {
    const { id, gate } = objectOf(value);
    return { id: textOf(id), gate: wordOf(gate, ["os", "table"]) };
  },
};

/**
 * The gate of `directory`, recorded there by whoever came first: `os` only where the file system is known to be local. UNSUPPORTED_DISK when the recorded
 * one cannot be used from here: two processes with two kinds of gates exclude nobody, so there is no falling back.
 */
export async function openGate(ports: Ports, staging: Staging, directory: string): Promise<Gate> {
  const kind = await decideGate(ports, staging, directory);
  if (kind === "table")
    refuse(directory, "a gate between machines", "is guarded by the lock table, which this program cannot use");
  if (ports.disk.volume.kind !== "local")
    refuse(
      directory,
      "a local disk",
      `is guarded by an OS lock, and ${ports.disk.volume.type} is not known to be local: such a lock may not hold between machines`,
    );
  return await Gate.open(ports, { lockPath: lockPathOf(directory), turnstilePath: `${directory}/.store.next` });
}

/** The recorded kind; decides it when there is none. */
export async function decideGate(ports: Ports, staging: Staging, directory: string): Promise<GateKind> {
  const path = `${directory}/gate.json`;
  const recorded = await findDecision(ports.disk, gateRecordKind, path);
  if (recorded !== undefined) return recorded.gate;
  const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
  const gate: GateKind = (await hasTrustworthyOsLocks(ports, directory)) ? "os" : "table";
  return (await decideRecord(staging, gateRecordKind, path, { id, gate })).gate;
}

/** A file system that is not known to be local may be another machine's too, and a test in one kernel proves nothing about that. */
async function hasTrustworthyOsLocks({ disk, osLock }: Ports, directory: string): Promise<boolean> {
  if (disk.volume.kind !== "local") return false;
  try {
    await (await osLock.open(lockPathOf(directory))).close();
    return true;
  } catch (error) {
    if (isHoldfastError(error, "UNSUPPORTED_DISK")) return false;
    throw error;
  }
}

function lockPathOf(directory: string): string {
  return `${directory}/.store.lock`;
}

function refuse(path: string, missing: string, why: string): never {
  throw holdfastError("UNSUPPORTED_DISK", `${path} ${why}. Nothing was written.`, { path, missing: [missing] });
}
