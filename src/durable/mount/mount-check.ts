// Whether a mount can be trusted at all. Asked before anything is opened there.
import { holdfastError } from "../../errors.ts";
import type { Ports } from "../../ports/ports.ts";
import { findMountRisks } from "./mount-risks.ts";

/** The risks that this process was warned of: once is enough, however many things it opens. */
const warnedOf = new Set<string>();

/**
 * UNSUPPORTED_DISK where `directory` is mounted in a way that loses writes. A risk that only
 * weakens a promise is a warning, once per process: the mount options are visible, but are looked
 * at only after something was lost.
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
