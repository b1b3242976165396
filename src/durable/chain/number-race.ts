// NumberRace: numbered names, each won exactly once and without gaps. A number is never vacated, so
// a successful link is sufficient proof.
import type { Disk } from "../../ports/disk.ts";
import { parentOf } from "../publish/directory.ts";
import { putStaged, type PublishOptions } from "../publish/publish.ts";
import { SharedSync } from "../publish/shared-sync.ts";

/** A file that is staged once and may be tried under several numbers. */
export interface Contender {
  readonly temp: string;
  /**
   * The file's content, or its beginning with `isPrefix`. It must contain a unique id: after a lost
   * reply it is the only evidence of who won.
   */
  readonly proof: Uint8Array;
  readonly isPrefix?: boolean | undefined;
}

export class NumberRace {
  readonly #disk: Disk;
  readonly #pathOf: (number: number) => string;
  readonly #sync: boolean;
  readonly #shared: SharedSync;
  /** The names up to this number are known to be durable. */
  #durableNumber = 0;

  /** The parent directories of the paths must exist. */
  constructor(disk: Disk, pathOf: (number: number) => string, { sync = true }: PublishOptions = {}) {
    this.#disk = disk;
    this.#pathOf = pathOf;
    this.#sync = sync;
    this.#shared = new SharedSync(disk);
  }

  /**
   * Returns true if the file has this number, permanently and durably, and false if another file has it. The previous
   * number must be taken. Throws OUTCOME_UNKNOWN if the reply was lost: then the content of this number shows who
   * won.
   */
  async win(number: number, { temp, proof, isPrefix }: Contender): Promise<boolean> {
    // Otherwise a power cut could remove the previous number and leave a gap.
    await this.makeDurable(number - 1);
    const won = await putStaged(this.#disk, temp, this.#pathOf(number), proof, {
      sync: this.#sync && ((directory) => this.#shared.sync(directory)),
      isPermanent: true,
      isPrefix,
    });
    if (won) this.#durableNumber = Math.max(this.#durableNumber, number);
    return won;
  }

  /**
   * Like `win`, but the name is durable only after `makeDurable`. The previous number must be durable, or taken by
   * this process in the same directory.
   */
  async take(number: number, { temp, proof, isPrefix }: Contender): Promise<boolean> {
    return await putStaged(this.#disk, temp, this.#pathOf(number), proof, { sync: false, isPermanent: true, isPrefix });
  }

  /** Makes this number and all before it durable: their winners may not have synced them yet. */
  async makeDurable(number: number): Promise<void> {
    if (number <= this.#durableNumber || !this.#sync) return;
    await this.#shared.sync(parentOf(this.#pathOf(number)));
    this.#durableNumber = Math.max(this.#durableNumber, number);
  }
}
