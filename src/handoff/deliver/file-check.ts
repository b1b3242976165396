// Checks the files of a ticket. A handler starts only if every file has the size and the SHA-256 in
// the manifest.
import { createHash } from "node:crypto";
import { isUnreadable } from "../../durable/publish/record-file.ts";
import { holdfastError, isHoldfastError, messageOf } from "../../errors.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Manifest, ManifestFile } from "../model/manifest.ts";

/** Throws PAYLOAD_MISMATCH for the first file whose bytes, as `read` yields them, differ from the manifest. */
export async function checkFiles(
  { id, files }: Pick<Manifest, "id" | "files">,
  read: (file: ManifestFile) => AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  for (const file of files) {
    const fault = await findFault(read(file), file, signal);
    if (fault === undefined) continue;
    const message = `The file ${JSON.stringify(file.name)} of ticket ${id} is not what its manifest says: ${fault}.`;
    throw holdfastError("PAYLOAD_MISMATCH", message, { id, file: file.name });
  }
}

/** Returns how these bytes differ from `file`, or undefined if they match. */
export async function findFault(
  bytes: AsyncIterable<Uint8Array>,
  file: Pick<ManifestFile, "size" | "sha256">,
  signal: AbortSignal,
): Promise<string | undefined> {
  const hash = createHash("sha256");
  let size = 0;
  try {
    for await (const chunk of bytes) {
      signal.throwIfAborted();
      hash.update(chunk);
      size += chunk.length;
      if (size > file.size) break;
    }
  } catch (error) {
    if (hasErrno(error, "ENOENT", "EISDIR")) return "it is not there";
    // Not a fault of the file: another worker may have the permission, or it can be granted later.
    if (!isUnreadable(error) || isHoldfastError(error, "NO_PERMISSION")) throw error;
    return `it cannot be read: ${messageOf(error).replace(/\.$/, "")}`;
  }
  if (size !== file.size) return `it has ${size > file.size ? "more than" : `${size} instead of`} ${file.size} bytes`;
  const sha256 = hash.digest("hex");
  return sha256 === file.sha256 ? undefined : `its SHA-256 is ${sha256} instead of ${file.sha256}`;
}
