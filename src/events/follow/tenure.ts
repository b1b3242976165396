// A tenure: the work of one holder of the lease, what it resumes from, and how it goes on.
import type { Checkpoint } from "./checkpoint.ts";
import type { Checkpoints } from "./checkpoints.ts";

export class LeasedWork {
  readonly fence: number;
  readonly #checkpoints: Checkpoints;
  #saved: Checkpoint;

  constructor(checkpoints: Checkpoints, taken: Checkpoint) {
    this.fence = taken.fence;
    this.#checkpoints = checkpoints;
    this.#saved = taken;
  }

  /** The newest one of this tenure. */
  get saved(): Checkpoint {
    return this.#saved;
  }

  /** Durable when it resolves. False when it does not count. */
  async save(position: number): Promise<boolean> {
    const saved = await this.#checkpoints.save(this.fence, position);
    if (saved !== undefined) this.#saved = saved;
    return saved !== undefined;
  }

  async end(): Promise<void> {
    await this.#checkpoints.end(this.fence);
  }

  /** False when `work` fails because somebody else has taken over, and has changed what it works on: that is no failure. */
  async orLost(work: () => Promise<boolean>): Promise<boolean> {
    try {
      return await work();
    } catch (error) {
      if (await this.#checkpoints.isHeldBy(this.fence)) throw error;
      return false;
    }
  }
}
