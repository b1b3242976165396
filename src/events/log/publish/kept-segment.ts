// The segment that this process writes to, kept open between sessions: on a local disk no other
// machine writes to it.
import { hasErrno } from "../../../ports/disk-error.ts";
import type { DiskFile } from "../../../ports/disk.ts";
import { openSegment, segmentPath } from "../format/segment.ts";
import type { LogFiles } from "../log-files.ts";

export class KeptSegment {
  readonly #files: LogFiles;
  #open: { readonly segment: number; readonly file: DiskFile; readonly identity: string } | undefined;

  constructor(files: LogFiles) {
    this.#files = files;
  }

  async open(segment: number): Promise<DiskFile> {
    if (this.#open?.segment !== segment) {
      await this.close();
      const file = await this.#files.disk.open(segmentPath(this.#files.directory, segment), "write");
      this.#open = { segment, file, identity: (await file.stat()).identity };
    }
    return this.#open.file;
  }

  /**
   * Looked up by name. CLOSED when another file has the name: no reader would find what is written
   * to the open one.
   */
  async sizeOf(segment: number): Promise<number> {
    const { disk, directory, continuity } = this.#files;
    const { size, identity } = await disk.stat(segmentPath(directory, segment)).catch(async (error: unknown) => {
      // Throws CORRUPT if the segment alone is gone, and not the whole log.
      if (hasErrno(error, "ENOENT")) await (await openSegment(disk, directory, segment)).close();
      throw error;
    });
    await this.open(segment);
    if (this.#open?.identity !== identity) throw continuity.broken();
    return size;
  }

  async close(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    // Acknowledged lines were synced before: a failed close takes nothing back.
    await open?.file.close().catch(() => undefined);
  }
}
