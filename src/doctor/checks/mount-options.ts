// Checks if a mount option weakens something that Holdfast relies on.
import { findMountRisks } from "../../durable/mount/mount-risks.ts";
import type { Volume } from "../../ports/disk.ts";
import type { DoctorCheck } from "../report.ts";

/** Returns one answer per risk, or a single good one. */
export function checkMountOptions(volume: Volume): DoctorCheck[] {
  const question = "Does a mount option weaken what Holdfast rests on?";
  const found = findMountRisks(volume).map(({ option, ...answer }): DoctorCheck => ({
    id: `mount-option:${option}`,
    question,
    ...answer,
  }));
  if (found.length > 0) return found;
  const finding =
    volume.mountOptions.length === 0 ? "No mount options are known." : "No mount option is known to weaken anything.";
  return [
    { id: "mount-options", question, verdict: "good", finding, meaning: "The mount keeps what Holdfast rests on." },
  ];
}
