// The report of an examination: one finding per check, and the verdict that follows from them.
import type { Volume } from "../ports/disk.ts";

/**
 * "limited": usable, with a limit that the finding names. "bad": Holdfast must not be used here.
 */
export type CheckVerdict = "good" | "limited" | "bad";

/** "limited": usable, with the limits that its checks name. "unusable": Holdfast must not be used here. */
export type DoctorVerdict = "ok" | "limited" | "unusable";

/** One question that `doctor` asked, and its answer. */
export interface DoctorCheck {
  /**
   * Stays the same between releases, for scripts: "hard-link", "mount-option:nocto",
   * "peer-os-lock".
   */
  readonly id: string;
  /** What was tested. */
  readonly question: string;
  /** "good", "limited" or "bad". */
  readonly verdict: CheckVerdict;
  /** The observation. */
  readonly finding: string;
  /** The consequence for programs that use Holdfast here. */
  readonly meaning: string;
  /** What to do about it. Absent if there is nothing to do. */
  readonly remedy?: string;
  /** Numbers behind the finding, if it has any. */
  readonly measured?: Readonly<Record<string, number>>;
}

/** The other side of the two-machine part. */
export interface DoctorPeer {
  /** "none came" and "went away" prove nothing either way: try again. */
  readonly state: "met" | "none came" | "went away";
  /** Host name of the other side. */
  readonly host?: string;
  /** Process id of the other side. */
  readonly pid?: number;
  /** True if both run on the same kernel, so the result says nothing about two machines. */
  readonly sameMachine?: boolean;
}

/** The result of `doctor`. */
export interface DoctorReport {
  /** The folder that was tested. */
  readonly directory: string;
  /** The verdict of the worst check. Two peers that met report the same verdict. */
  readonly verdict: DoctorVerdict;
  /** The file system of the folder. */
  readonly volume: Volume;
  /** All checks, in the order in which they ran. */
  readonly checks: readonly DoctorCheck[];
  /** Only when a peer was asked for. */
  readonly peer?: DoctorPeer;
}

/** Returns the verdict that follows from the worst answer. */
export function verdictOf(verdicts: readonly CheckVerdict[]): DoctorVerdict {
  if (verdicts.includes("bad")) return "unusable";
  return verdicts.includes("limited") ? "limited" : "ok";
}
