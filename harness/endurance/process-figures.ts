// What Linux says of a process: its memory, its processor time, the files that it has open, and its locks.
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** The kernel counts processor time in hundredths of a second. */
const ticksPerSecond = 100;

/** Figures of one process; only on Linux. */
export class ProcessFigures {
  readonly #pid: number;

  constructor(pid: number) {
    this.#pid = pid;
  }

  /** The memory that it occupies, in MB. */
  memoryMb(): number {
    const [, kilobytes = "0"] = /^VmRSS:\s+(\d+) kB$/m.exec(this.#read("status")) ?? [];
    return Number(kilobytes) / 1024;
  }

  /** The processor time of all its threads so far, in seconds. */
  cpuSeconds(): number {
    // The name of the program, in parentheses, may contain spaces.
    const fields = this.#read("stat").split(") ").at(-1)?.split(" ") ?? [];
    return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
  }

  /** The files below `directory` that it has open for writing. */
  writableBelow(directory: string): string[] {
    return readdirSync(`/proc/${this.#pid}/fd`).flatMap((descriptor) => {
      try {
        const path = readlinkSync(`/proc/${this.#pid}/fd/${descriptor}`);
        const [, flags = "0"] = /^flags:\s+(\d+)$/m.exec(this.#read(`fdinfo/${descriptor}`)) ?? [];
        const accessMode = Number.parseInt(flags, 8) & 3;
        return path.startsWith(`${directory}/`) && accessMode !== 0 ? [path] : [];
      } catch {
        // It was closed meanwhile.
        return [];
      }
    });
  }

  /** The OS locks that it holds, as lines of /proc/locks. */
  osLocks(): string[] {
    const lines = readFileSync("/proc/locks", "utf8").split("\n");
    return lines.filter((line) => line.split(/\s+/)[4] === String(this.#pid));
  }

  #read(name: string): string {
    return readFileSync(`/proc/${this.#pid}/${name}`, "utf8");
  }
}
