// The stamp of a directory with everything below it, as a deep list shows it: paths, sizes and times. It
// also tells of what people changed, which no change log has.
import { createHash } from "node:crypto";
import type { FileInfo, FileOperations } from "../files/index.ts";

export class TreeStamp {
  readonly #entries: string[] = [];

  add({ path, directory, size, modifiedAt }: FileInfo): void {
    this.#entries.push(directory ? `${path}/` : JSON.stringify([path, size, modifiedAt.getTime()]));
  }

  end(): string {
    return createHash("sha256").update(this.#entries.sort().join("\n")).digest("hex").slice(0, 32);
  }
}

export async function treeStampOf(files: FileOperations, directory: string, signal: AbortSignal): Promise<string> {
  const stamp = new TreeStamp();
  for await (const info of files.list(directory, { deep: true, signal })) stamp.add(info);
  return stamp.end();
}
