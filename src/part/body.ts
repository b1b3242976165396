// STAND-IN
import { createHash } from "node:crypto";
import type { Body } from "../common.ts";
import type { Disk } from "../ports/disk.ts";
export async function* chunksOf(body: Body): AsyncGenerator<Uint8Array> {
  if (typeof body === "string") yield Buffer.from(body);
  else if (body instanceof Uint8Array) yield body;
  else yield* body;
}
export async function writeBody(disk: Disk, path: string, body: Body, { sync, signal }: { sync: boolean; signal?: AbortSignal | undefined }): Promise<{ size: number; sha256: string }> {
  const file = await disk.open(path, "create");
  const hash = createHash("sha256"); let size = 0;
  try {
    for await (const chunk of chunksOf(body)) { signal?.throwIfAborted(); await file.write(size, chunk); hash.update(chunk); size += chunk.length; }
    if (sync) await file.sync();
  } finally { await file.close(); }
  return { size, sha256: hash.digest("hex") };
}
