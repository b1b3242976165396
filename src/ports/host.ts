// The identity of this process on this machine, and what can be said of another process here.

const unknownBoot = "unknown-";

/** The boot id of a process that cannot find out: no other process has it, so it proves nothing. */
export function unknownBootId(random: string): string {
  return unknownBoot + random;
}

export function isKnownBoot(bootId: string): boolean {
  return !bootId.startsWith(unknownBoot);
}

export interface Host {
  /** For people. Not an identity: containers share or change it. */
  readonly name: string;
  /** 1 in every container. Not an identity without `bootId` and `startedAtMs`. */
  readonly pid: number;
  /**
   * Two processes with equal known ids run under one kernel that was not restarted in between. That
   * they differ says nothing: systemd-nspawn and LXC show an id of their own in each container. New
   * after each restart. Linux: /proc/sys/kernel/random/boot_id. macOS: kern.bootsessionuuid.
   * Windows: derived from the boot time, so that two boots within one second would be taken for
   * one.
   */
  readonly bootId: string;
  /**
   * Which process table `processState` asks: two processes with equal `bootId` and equal
   * `processSpace` can look each other up, and read start marks by one clock; all others cannot. A
   * container has its own. Empty where a kernel has only one (macOS, Windows).
   */
  readonly processSpace: string;
  /** When this process started, by the wall clock, for people. */
  readonly startedAtMs: number;
  /**
   * Opaque mark of this process's start; with `pid` and `bootId` it tells a process from a later
   * one with the same pid. Empty where unknown.
   */
  readonly startMark: string;
  /**
   * What the process table of this pid namespace says. "alive" also when the process belongs to
   * another user (EPERM). A `startMark` that differs from the recorded one is another process:
   * "dead". Says nothing about a process in another container or on another machine.
   */
  processState(pid: number, startMark: string): "alive" | "dead";
  /** Shows a warning to the person who runs this process. */
  warn(message: string): void;
  /**
   * The `startMark` of another process of this process table; empty where unknown, and when there
   * is no such process.
   */
  startMarkOf(pid: number): string;
  /**
   * When another process of this process table began, by the wall clock of this one, to about a
   * second. Undefined when there is no such process, when it has ended, and where that is not
   * known.
   */
  findStartMs(pid: number): number | undefined;
}
