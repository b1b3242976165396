// Which user's functions the work of a tree needs. A process without one of them would index with less than the others
// do, so it leaves the work to them.
import { ensureDirectory } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { FunctionName } from "./user-functions.ts";

export class NeededFunctions {
  readonly #staging: Staging;
  /** A file for each name. A person removes one whose function is not used any more. */
  readonly #directory: string;

  constructor(staging: Staging, directory: string) {
    this.#staging = staging;
    this.#directory = directory;
  }

  /** Said by a process that has them. */
  async add(names: readonly FunctionName[]): Promise<void> {
    const known = await this.list();
    if (names.every((name) => known.includes(name))) return;
    await ensureDirectory(this.#staging.disk, this.#directory);
    for (const name of names) {
      const proof = Buffer.from(`${randomName(this.#staging.random.bytes(16))}\n`);
      await putIfAbsent(this.#staging, `${this.#directory}/${name}`, proof);
    }
  }

  async list(): Promise<string[]> {
    try {
      return await this.#staging.disk.list(this.#directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT")) return [];
      throw error;
    }
  }
}
