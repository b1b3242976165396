// Refuses mounts that lose writes. Runs before anything is opened there.
import { holdfastError } from "../../errors.ts";
import type { Ports } from "../../ports/ports.ts";
import { findMountRisks } from "./mount-risks.ts";

/** The risks that this process has warned about. Each is reported once, however many things the process opens. */
const warnedOf = new Set<string>();

/**
 * Throws UNSUPPORTED_DISK if `directory` is mounted in a way that loses writes. A risk that only
 * weakens a guarantee is a warning, once per process: mount options are visible, but people check
 * them only after a loss.
 */
export function checkMount({ disk, host }: Pick<Ports, "disk" | "host">, directory: string): void {
  const { type } = disk.volume;
  const risks = findMountRisks(disk.volume);
  const bad = risks.filter(({ verdict }) => verdict === "bad");
  if (bad.length > 0) {
    const why = bad.map(({ finding, meaning, remedy }) => `${finding} ${meaning} ${remedy}`).join(" ");
    const missing = bad.map(({ remedy }) => remedy);
    throw holdfastError("UNSUPPORTED_DISK", `${directory} is on ${type}. ${why}`, { path: directory, missing });
  }
  for (const { finding, meaning, remedy } of risks) {
    if (warnedOf.has(`${type} ${finding}`)) continue;
    warnedOf.add(`${type} ${finding}`);
    host.warn(`${directory} is on ${type}. ${finding} ${meaning} ${remedy}`);
  }
}
