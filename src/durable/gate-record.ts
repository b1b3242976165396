// Which kind of gate guards a directory: decided once, recorded in the directory, and binding for every process of every machine.
import { holdfastError } from "../errors.ts";
import { objectOf, textOf, wordOf } from "../format/decoding.ts";
import { makeId } from "../format/id.ts";
import type { RecordKind } from "../format/record.ts";
import type { Ports } from "../ports/ports.ts";
import { decideRecord, findRecord } from "./record-file.ts";
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
 * The recorded gate of `directory`; decides it when there is none: `os` only where the file system is known to be local. Two processes with two kinds of gates
 * exclude nobody, so whoever cannot use the recorded one must refuse: `mustBeUsable` says so.
 */
export async function decideGate(ports: Ports, staging: Staging, directory: string): Promise<GateKind> {
  const path = `${directory}/gate.json`;
  const recorded = await findRecord(ports.disk, gateRecordKind, path);
  if (recorded !== undefined) return recorded.gate;
  const id = makeId(ports.clock.wallMs(), ports.random.bytes(16));
  const gate: GateKind = ports.disk.volume.kind === "local" ? "os" : "table";
  return (await decideRecord(staging, gateRecordKind, path, { id, gate })).gate;
}

/** UNSUPPORTED_DISK when the recorded gate would not exclude the others from here. */
export function mustBeUsable(ports: Ports, gate: GateKind, directory: string, usable: readonly GateKind[]): void {
  const refuse = (missing: string, why: string): never => {
    throw holdfastError("UNSUPPORTED_DISK", `${directory} is guarded by the gate "${gate}", ${why}.`, {
      path: directory,
      missing: [missing],
    });
  };
  if (!usable.includes(gate)) refuse(`gate "${gate}"`, "which this program cannot use");
  if (gate === "os" && ports.disk.volume.kind !== "local")
    refuse(
      "a local disk",
      `an OS lock, which does not hold between machines, and ${ports.disk.volume.type} is not known to be local`,
    );
}
