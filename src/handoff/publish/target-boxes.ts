// Target boxes: other boxes that the deliveries of this one send tickets to, each opened once.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Box } from "../box/box.ts";
import { openBox, type OpenedBox } from "../box/open-box.ts";
import { leaveBox } from "../recover/return-tickets.ts";

export class TargetBoxes {
  readonly #box: Box;
  readonly #leaseMs: number;
  readonly #opened = new Map<string, Promise<OpenedBox>>();

  constructor(box: Box, leaseMs: number) {
    this.#box = box;
    this.#leaseMs = leaseMs;
  }

  /**
   * Opens the box in `directory`, which may be the sending box. Throws NOT_A_STORE if there is
   * none.
   */
  async open(directory: string): Promise<Box> {
    const { layout, ground, isSynced } = this.#box;
    if (directory === layout.directory) return this.#box;
    let opening = this.#opened.get(directory);
    if (opening === undefined) {
      const options = { leaseMs: this.#leaseMs, isSynced, ground, create: false };
      opening = openBox(ground.ports, directory, options).catch((error: unknown) => {
        throw isHoldfastError(error, "NOT_A_STORE") ? noTarget(directory, error) : error;
      });
      this.#opened.set(directory, opening);
      opening.catch(() => this.#opened.delete(directory));
    }
    return (await opening).box;
  }

  async close(): Promise<void> {
    for (const opening of this.#opened.values()) {
      const other = await opening.catch(() => undefined);
      if (other !== undefined) await leaveBox(other.box);
      if (other?.ownsGround === true) await other.box.ground.close();
    }
  }
}

/** Never creates a box: it would get the ground of the sender. */
function noTarget(path: string, cause: unknown): Error {
  const message = `There is no box in ${path}, so nothing can be sent to it. Is the share mounted? Open the box once to create it.`;
  return holdfastError("NOT_A_STORE", message, { path }, cause);
}
