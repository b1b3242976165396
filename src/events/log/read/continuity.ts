// A log that is another one than it was: its directory, or a file that says how far it goes, was replaced or put back to an older state under a process that has it open.
// Such a process knows of lines that are not there any more, so nothing that it judges or tells would be true.
import { holdfastError } from "../../../errors.ts";
import { emptyTip, isBefore, isEqualTip, isSameTip, type Tip } from "../format/tip.ts";

/** What one process has known of a log, and that it must stay so. */
export class Continuity {
  readonly #directory: string;
  #known: Tip = emptyTip;
  #isBroken = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** CLOSED, for good: view and gate are those of the log that was there before. */
  mustHold(): void {
    if (this.#isBroken) throw this.broken();
  }

  /** To be thrown by whoever finds that it is another log. */
  broken(): Error {
    this.#isBroken = true;
    const message = `${this.#directory} was replaced, or put back to an older state, while it was open. Nothing was judged or written. Open it again.`;
    return holdfastError("CLOSED", message, {});
  }

  /** The tip that `look` finds. What was known when it began is a part of it: nothing that counts is ever taken back. */
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

  /** This process knows of it now. */
  reach(tip: Tip): void {
    if (isBefore(this.#known, tip)) this.#known = tip;
  }
}
