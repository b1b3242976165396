// Detects a log that was replaced, or put back to an older state, while a process has it open. Such
// a process knows of lines that do not exist any more, so nothing that it judges or tells would be
// true.
import { holdfastError } from "../../errors.ts";
import { emptyTip, isBefore, isEqualTip, isSameTip, type Tip } from "./format/tip.ts";

/** The furthest tip that one process knows of a log. It never moves back. */
export class Continuity {
  readonly #directory: string;
  #known: Tip = emptyTip;
  #isBroken = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** CLOSED, for good: view and gate of this process belong to the former log. */
  mustHold(): void {
    if (this.#isBroken) throw this.broken();
  }

  /** For the caller to throw when it finds another log. */
  broken(): Error {
    this.#isBroken = true;
    const message = `${this.#directory} was replaced, or put back to an older state, while it was open. Nothing was judged or written. Open it again.`;
    return holdfastError("CLOSED", message, {});
  }

  /**
   * The tip that `look` finds. It must not be before the tip known when the look began: what counts
   * is never taken back.
   */
  async following(look: () => Promise<Tip>): Promise<Tip> {
    this.mustHold();
    const known = this.#known;
    const tip = await look();
    this.mustFollow(known, tip);
    this.reach(tip);
    return tip;
  }

  mustFollow(known: Tip, tip: Tip): void {
    this.mustHold();
    if (isBefore(tip, known) || (isSameTip(tip, known) && !isEqualTip(tip, known))) throw this.broken();
  }

  /** This process knows of the tip now. */
  reach(tip: Tip): void {
    if (isBefore(this.#known, tip)) this.#known = tip;
  }
}
