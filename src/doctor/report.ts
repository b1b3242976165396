// What an examination answers: one finding per check, and the verdict that follows from all of
// them.
import type { Volume } from "../ports/disk.ts";

/**
 * "limited": usable, with a limit that the finding names. "bad": Holdfast must not be used here.
 */
export type CheckVerdict = "good" | "limited" | "bad";

/** "limited" can be used; "unusable" must not. */
export type DoctorVerdict = "ok" | "limited" | "unusable";

export interface DoctorCheck {
  /**
   * Stays the same between releases, for scripts: "hard-link", "mount-option:nocto",
   * "peer-os-lock".
   */
  readonly id: string;
  readonly question: string;
  readonly verdict: CheckVerdict;
  /** What was seen. */
  readonly finding: string;
  /** What it means for programs that use Holdfast here. */
  readonly meaning: string;
  /** What can be done about it; absent when there is nothing to do. */
  readonly remedy?: string;
  readonly measured?: Readonly<Record<string, number>>;
}

/** The other side of the two-machine part. */
export interface DoctorPeer {
  /** "none came" and "went away" prove nothing either way: try again. */
  readonly state: "met" | "none came" | "went away";
  readonly host?: string;
  readonly pid?: number;
  /** Both are on one running kernel, so that nothing was learnt about two machines. */
  readonly sameMachine?: boolean;
}

export interface DoctorReport {
  readonly directory: string;
  /** Of two that met, both say the same. */
  readonly verdict: DoctorVerdict;
  readonly volume: Volume;
  readonly checks: readonly DoctorCheck[];
  /** Only when a peer was asked for. */
  readonly peer?: DoctorPeer;
}

/** The worst answer decides. */
export function verdictOf(verdicts: readonly CheckVerdict[]): DoctorVerdict {
  if (verdicts.includes("bad")) return "unusable";
  return verdicts.includes("limited") ? "limited" : "ok";
}
