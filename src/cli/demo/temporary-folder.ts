// A temporary folder, created for one demo and removed after it.
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { directoryOf, openPorts, removeTree, type Disk } from "../../durable/index.ts";
import { HoldfastError, isHoldfastError } from "../../index.ts";

export class TemporaryFolder {
  readonly directory: string;
  readonly #disk: Disk;

  private constructor(directory: string, disk: Disk) {
    this.directory = directory;
    this.#disk = disk;
  }

  /**
   * Throws INVALID_PATH if the system's directory for temporary files does not exist. It is not
   * created: nobody would remove it.
   */
  static async make(): Promise<TemporaryFolder> {
    const above = directoryOf(tmpdir());
    const directory = `${above}/holdfast-demo-${randomBytes(6).toString("hex")}`;
    try {
      const { disk } = await openPorts(above);
      await disk.mkdir(directory);
      return new TemporaryFolder(directory, disk);
    } catch (error) {
      if (!isHoldfastError(error, "IO_ERROR") || !["ENOENT", "ENOTDIR"].includes(error.errno ?? "")) throw error;
      const message = `${above}, where temporary files should be, is not a directory. Correct TMPDIR (TEMP on Windows), or name a folder with --dir.`;
      throw new HoldfastError("INVALID_PATH", message, { path: above }, error);
    }
  }

  /** Removes the folder with its content, without following links. Returns false if something stays. */
  async remove(): Promise<boolean> {
    try {
      await removeTree(this.#disk, this.directory);
      return !(await this.#disk.canOpen(this.directory));
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
      return false;
    }
  }
}
