// The doctor on real file systems: part of "holdfast", not a separate subpath.
import { directoryOf } from "../ports/node/location.ts";
import { openNodePorts } from "../ports/node/ports.ts";
import type { Ports } from "../ports/ports.ts";
import { examine, type DoctorOptions } from "./doctor.ts";
import type { DoctorReport } from "./report.ts";
import { explainMissing } from "./scratch.ts";

export type { DoctorOptions } from "./doctor.ts";
export type { CheckVerdict, DoctorCheck, DoctorPeer, DoctorReport, DoctorVerdict } from "./report.ts";

/** See `doctor` of "holdfast". */
export async function doctor(directory: string, options: DoctorOptions = {}): Promise<DoctorReport> {
  const absolute = directoryOf(directory);
  return await examine(await openPorts(absolute), absolute, options);
}

async function openPorts(directory: string): Promise<Ports> {
  try {
    return await openNodePorts(directory);
  } catch (error) {
    // A file in the middle of the path is detected here, when the mount is looked up.
    throw explainMissing(error, directory);
  }
}
