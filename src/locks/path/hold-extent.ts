// How far a hold reaches: its claims, and what the lock table may say of them that is not so.
import { coversAll, withExtent, type Claim, type LockExtent } from "../table/claim.ts";

export class HoldExtent {
  #asked: readonly Claim[];
  #claims: readonly Claim[];
  /** While a downgrade is under way: the claims to return to. */
  #claimsBefore: readonly Claim[] | undefined;
  /** Upgrade announcement in the table: none, maybe written, or to be retracted. */
  #announcement: "none" | "maybe written" | "to retract" = "none";
  /** The table may have wider claims, because the answer to an append was lost. */
  #isInDoubt = false;

  constructor(asked: readonly Claim[], claims: readonly Claim[]) {
    this.#asked = asked;
    this.#claims = claims;
  }

  /** In the caller's spelling. */
  get asked(): readonly Claim[] {
    return this.#asked;
  }

  /** As keys. The list is another one after each change. */
  get claims(): readonly Claim[] {
    return this.#claims;
  }

  covers(claims: readonly Claim[]): boolean {
    return coversAll(this.#claims, claims);
  }

  /** The table has the wider claims. */
  upgrade(claims: readonly Claim[], to: Partial<LockExtent>): void {
    this.noteInTable();
    this.#claims = claims;
    this.#asked = withExtent(this.#asked, to);
  }

  /** The hold is narrower before the table says so, because others come in as soon as that does. */
  beginDowngrade(to: Partial<LockExtent>): void {
    this.#claimsBefore = this.#claims;
    this.#claims = withExtent(this.#claims, to);
  }

  /** The table has the claims as they were. */
  cancelDowngrade(): void {
    this.#claims = this.#claimsBefore ?? this.#claims;
  }

  /** The hold stays narrower. `isInDoubt`: the table may not say so yet. */
  finishDowngrade(to: Partial<LockExtent>, { isInDoubt }: { readonly isInDoubt: boolean }): void {
    this.#asked = withExtent(this.#asked, to);
    this.#isInDoubt = isInDoubt;
  }

  get isInDoubt(): boolean {
    return this.#isInDoubt;
  }

  noteInDoubt(): void {
    this.#isInDoubt = true;
  }

  /** Noted before the append: if its answer is lost, the announcement may be there. */
  noteAnnouncement(): void {
    this.#announcement = "maybe written";
  }

  /** Nothing was announced. */
  forgetAnnouncement(): void {
    this.#announcement = "none";
  }

  /** Its owner does not wait for the upgrade any more. */
  retractAnnouncement(): void {
    if (this.#announcement === "maybe written") this.#announcement = "to retract";
  }

  /**
   * Whether the table must be corrected: it may have wider claims, or an announcement that is over.
   */
  get needsCorrection(): boolean {
    return this.#announcement === "to retract" || this.#isInDoubt;
  }

  /** Whether the table surely has these claims and no announcement. */
  get isInTable(): boolean {
    return this.#announcement === "none" && !this.#isInDoubt;
  }

  noteInTable(): void {
    this.#announcement = "none";
    this.#isInDoubt = false;
  }
}
