// The payload of a ticket: its files, streamed to their final directory and hashed on the way, or
// stored in the ticket itself if all of them together are small.
import type { Body } from "../../common.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { recordBytesMax } from "../../format/record.ts";
import { copyBody, untilAborted } from "../../part/body.ts";
import type { Box } from "../box/box.ts";
import type { Publication, WrittenFile } from "../model/publication.ts";
import { sha256Of } from "../../format/checksum.ts";

/** Up to this size a payload needs no file of its own. */
const inlineBytesMax = 64 * 1024;
/**
 * With many files, their average size may be this large: about as much as the manifest needs for
 * each.
 */
const inlineBytesEach = 256;
/** Upper limits of what a manifest needs besides names and types: for each file, and once for all. */
const describedBytes = 160;
const describedOnceBytes = 16 * 1024;
/** Maximum number of open files: files that are synced concurrently share commits of the file system. */
const openMax = 16;

export interface Payload {
  readonly files: readonly WrittenFile[];
  /** The contents of the files, in their order, if they are small enough to be stored in the ticket. */
  readonly inline?: readonly Uint8Array[];
}

/**
 * Writes the files of ticket `id`, or returns their contents if they are small. Durable when it resolves. A failure leaves
 * a directory, which the caller removes. `beforeFiles` is called before anything is written.
 */
export async function writePayload(
  box: Box,
  id: string,
  publication: Publication,
  beforeFiles: () => Promise<void>,
): Promise<Payload> {
  return await gatherPayload(publication, async (bodies) => {
    await beforeFiles();
    return await writeFiles(box, id, bodies, publication.signal);
  });
}

/** Returns the contents if they are small. Otherwise passes the bodies to `write`, which reads them to their end. */
export async function gatherPayload(
  publication: Publication,
  write: (bodies: readonly (readonly [name: string, body: Body])[]) => Promise<readonly WrittenFile[]>,
): Promise<Payload> {
  const { bodies, signal } = publication;
  const small: { readonly name: string; readonly bytes: Uint8Array }[] = [];
  let leftBytes = inlineRoomOf(publication);
  for (const [index, [name, body]] of bodies.entries()) {
    const { bytes, whole, release } = await readAhead(body, leftBytes, signal);
    if (bytes === undefined) {
      const before = small.map((each): [string, Body] => [each.name, each.bytes]);
      try {
        return { files: await write([...before, [name, whole], ...bodies.slice(index + 1)]) };
      } finally {
        release?.();
      }
    }
    small.push({ name, bytes });
    leftBytes -= bytes.length;
  }
  return {
    files: small.map(({ name, bytes }) => ({ name, size: bytes.length, sha256: sha256Of(bytes) })),
    inline: small.map(({ bytes }) => bytes),
  };
}

/** Returns how many bytes of content the ticket may hold without becoming too large for a record. */
function inlineRoomOf({ bodies, facts, records, contentTypes }: Publication): number {
  const wantedBytes = inlineBytesEach * bodies.length;
  if (wantedBytes <= inlineBytesMax) return inlineBytesMax;
  const names = bodies.map(([name]) => name);
  // Each name is in the manifest and before its content, which is base64: four bytes for three.
  const manifestBytes = Buffer.byteLength(JSON.stringify([facts, records, contentTypes, names, names]));
  const leftBytes = recordBytesMax - describedOnceBytes - describedBytes * bodies.length - manifestBytes;
  return Math.max(inlineBytesMax, Math.min(wantedBytes, Math.floor(leftBytes * 0.75)));
}

/**
 * Writes the files. Reads the sources one after the other; syncs up to `openMax` written files
 * meanwhile.
 */
async function writeFiles(
  box: Box,
  id: string,
  bodies: readonly (readonly [name: string, body: Body])[],
  signal: AbortSignal | undefined,
): Promise<WrittenFile[]> {
  const directory = box.layout.payload(id);
  await box.ensure(parentOf(directory));
  await makeUniqueDirectory(box.disk, directory);
  const files: WrittenFile[] = [];
  async function* copy(): AsyncGenerator<() => Promise<void>> {
    for (const [name, body] of bodies) {
      const { size, sha256, finish } = await copyBody(box.disk, `${directory}/${name}`, body, { signal });
      files.push({ name, size, sha256 });
      yield finish;
    }
  }
  await inParallel(copy(), openMax, (finish) => finish());
  await box.sync(directory, parentOf(directory));
  return files;
}

/** All bytes of a small body; for a larger one, a body that begins with what was read. */
type ReadAhead =
  | { readonly bytes: Uint8Array; readonly whole?: undefined; readonly release?: undefined }
  | { readonly bytes?: undefined; readonly whole: Body; readonly release?: () => void };

async function readAhead(body: Body, bytesMax: number, signal: AbortSignal | undefined): Promise<ReadAhead> {
  if (body instanceof Uint8Array)
    // A copy: the caller may change its bytes meanwhile.
    return body.length > bytesMax ? { whole: body } : { bytes: new Uint8Array(body) };
  if (typeof body === "string")
    return Buffer.byteLength(body) > bytesMax ? { whole: body } : { bytes: Buffer.from(body) };
  const chunks = untilAborted(body, signal);
  const read: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const next = await chunks.next();
    if (next.done === true) return { bytes: Buffer.concat(read) };
    size += next.value.length;
    if (size > bytesMax) {
      // Ends a source that was begun, even if the disk fails before more is read from it.
      const release = (): void => void chunks.return(undefined).catch(() => undefined);
      return { whole: prepend(Buffer.concat([...read, next.value]), chunks), release };
    }
    // A copy: the source may reuse its buffer.
    read.push(new Uint8Array(next.value));
  }
}

async function* prepend(bytes: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield bytes;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
