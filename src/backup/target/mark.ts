// Mark: a file of a target that says that a process works there. Once it is given up, it never counts again.
import { abandonedFolder } from "../manifest.ts";
import type { BackupTarget } from "./target.ts";

/**
 * A process that slept may write its mark again after another one removed it. So whoever removes a mark first puts a
 * file in `abandoned/`, which stays; and whoever writes a mark looks for that file afterwards.
 */
export class Mark {
  readonly #target: BackupTarget;
  readonly #name: string;
  readonly #lost: () => Error;
  #isPut = false;

  /** `lost` makes the error for a mark that is gone. */
  constructor(target: BackupTarget, name: string, lost: () => Error) {
    this.#target = target;
    this.#name = name;
    this.#lost = lost;
  }

  /** Puts the mark, or renews it, durably. Throws if another process has removed it. */
  async put(bytes: Uint8Array): Promise<void> {
    if (this.#isPut) await this.mustBeThere();
    this.#isPut = true;
    await this.#target.put(this.#name, bytes);
    await this.#target.settle();
    if ((await this.#target.find(graveOf(this.#name))) === undefined) return;
    await this.remove();
    throw this.#lost();
  }

  /** Throws if another process has removed the mark. */
  async mustBeThere(): Promise<void> {
    if ((await this.#target.find(this.#name)) === undefined) throw this.#lost();
  }

  /** Moves the mark to its last name. Throws if another process has removed it. */
  async move(to: string): Promise<void> {
    if (!(await this.#target.move(this.#name, to))) throw this.#lost();
  }

  async remove(): Promise<void> {
    await this.#target.remove(this.#name);
  }
}

/** Removes the mark of a process that seems to be gone. If it continues after all, it fails. */
export async function giveUp(target: BackupTarget, mark: string): Promise<void> {
  await target.put(graveOf(mark), Buffer.from("{}\n"));
  await target.settle();
  await target.remove(mark);
  await target.settle();
}

function graveOf(mark: string): string {
  return abandonedFolder + mark.slice(mark.lastIndexOf("/") + 1);
}
