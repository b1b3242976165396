// NumberRace: numbered names, each won exactly once and without gaps. A number is never vacated, so a link is all the proof.
import type { Disk } from "../../ports/disk.ts";
import { parentOf } from "../publish/directory.ts";
import { putStaged, type PublishOptions } from "../publish/publish.ts";
import { SharedSync } from "../publish/shared-sync.ts";

/** A file that was staged once and may be tried under several numbers. */
export interface Contender {
  readonly temp: string;
  /** Its content, or with `isPrefix` its beginning; with an id of its own, because after a lost reply it is the only witness. */
  readonly proof: Uint8Array;
  readonly isPrefix?: boolean | undefined;
}

export class NumberRace {
  readonly #disk: Disk;
  readonly #pathOf: (number: number) => string;
  readonly #sync: boolean;
  readonly #shared: SharedSync;
  /** Up to here this process has seen the names made durable. */
  #durableNumber = 0;

  /** The directories of the paths must exist. */
  constructor(disk: Disk, pathOf: (number: number) => string, { sync = true }: PublishOptions = {}) {
    this.#disk = disk;
    this.#pathOf = pathOf;
    this.#sync = sync;
    this.#shared = new SharedSync(disk);
  }

  /**
   * True when the file has this number for good, durable; false when another file has it. The number before must be
   * taken. OUTCOME_UNKNOWN when the answer was lost: then the content of this number tells.
   */
  async win(number: number, { temp, proof, isPrefix }: Contender): Promise<boolean> {
    // Else a power cut could take the number before and leave a gap.
    await this.makeDurable(number - 1);
    const won = await putStaged(this.#disk, temp, this.#pathOf(number), proof, {
      sync: this.#sync && ((directory) => this.#shared.sync(directory)),
      isPermanent: true,
      isPrefix,
    });
    if (won) this.#durableNumber = Math.max(this.#durableNumber, number);
    return won;
  }

  /** Makes this number and all before it durable: the process that won it may not have come to its sync. */
  async makeDurable(number: number): Promise<void> {
    if (number <= this.#durableNumber || !this.#sync) return;
    await this.#shared.sync(parentOf(this.#pathOf(number)));
    this.#durableNumber = Math.max(this.#durableNumber, number);
  }
}
