// Detects that a log was replaced, or restored to an older state, while a process has it open. That process knows
// lines that no longer exist, so its verdicts and answers would be wrong.
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

  /**
   * Throws CLOSED, permanently, once the log was replaced: the view and the gate of this process belong to the former
   * log.
   */
  mustHold(): void {
    if (this.#isBroken) throw this.broken();
  }

  /** Returns the error that the caller throws when it finds another log. */
  broken(): Error {
    this.#isBroken = true;
    const message = `${this.#directory} was replaced, or put back to an older state, while it was open. Nothing was judged or written. Open it again.`;
    return holdfastError("CLOSED", message, {});
  }

  /**
   * Returns the tip that `look` finds. It must not precede the tip that was known when `look` began: a published line
   * is never revoked.
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

  /** Records that this process knows the tip. */
  reach(tip: Tip): void {
    if (isBefore(this.#known, tip)) this.#known = tip;
  }
}
