// The identity of this process on this machine, and what the kernel knows about other processes
// here.

const unknownBoot = "unknown-";

/** The boot id of a process that cannot find it out. No other process has it, so it proves nothing. */
export function unknownBootId(random: string): string {
  return unknownBoot + random;
}

export function isKnownBoot(bootId: string): boolean {
  return !bootId.startsWith(unknownBoot);
}

/** The identity of this process on its machine, and the state of other processes there. */
export interface Host {
  /** Host name, for people. Not an identity: containers share or change it. */
  readonly name: string;
  /** Process id. Not an identity without `bootId` and `startedAtMs`: it is 1 in every container. */
  readonly pid: number;
  /**
   * The boot id: processes with equal known ids run under one kernel that was not restarted in
   * between. Different ids prove nothing: systemd-nspawn and LXC show an id of their own in each
   * container.
   *
   * Linux: /proc/sys/kernel/random/boot_id. macOS: kern.bootsessionuuid. Windows: derived from the
   * boot time, so two boots within one second look like one.
   */
  readonly bootId: string;
  /**
   * The process table that `processState` reads. Only processes with equal `bootId` and
   * `processSpace` can look each other up. A container has its own. Empty if a kernel has only one
   * (macOS, Windows).
   */
  readonly processSpace: string;
  /** When this process started, by the wall clock, for people. */
  readonly startedAtMs: number;
  /**
   * Opaque mark of the start of this process; with `pid` and `bootId` it tells a process from a
   * later one with the same pid. Empty if it is unknown.
   */
  readonly startMark: string;
  /**
   * Returns the state of a process in the process table of this process. It is `alive` also if it
   * belongs to another user, and `dead` if its start mark differs. It says nothing about a process
   * in another container or on another machine.
   */
  processState(pid: number, startMark: string): "alive" | "dead";
  /** Shows a warning to the person who runs this process. */
  warn(message: string): void;
  /**
   * Returns the `startMark` of another process in this process table; empty if it is unknown or
   * there is no such process.
   */
  startMarkOf(pid: number): string;
  /**
   * Returns when another process in this process table started, by the wall clock, to about a
   * second. Returns undefined if there is no such process, if it has ended, or if it is unknown.
   */
  findStartMs(pid: number): number | undefined;
}
