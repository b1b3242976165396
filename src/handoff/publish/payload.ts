// The payload of a ticket: its files, streamed to where they stay and hashed on the way, or put into the
// ticket itself if all of them together are small.
import { createHash } from "node:crypto";
import type { Body } from "../../common.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { untilAborted, writeBody } from "../../part/body.ts";
import type { Box } from "../box/box.ts";

/** Up to here a payload costs no file of its own. */
export const inlineBytesMax: number = 64 * 1024;

export interface WrittenFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

export interface Payload {
  readonly files: readonly WrittenFile[];
  readonly inline?: Readonly<Record<string, string>>;
}

/** Writes the files of ticket `id`. Durable when it resolves. A failure leaves a directory, which the caller removes. */
export async function writePayload(
  box: Box,
  id: string,
  bodies: readonly (readonly [name: string, body: Body])[],
  signal: AbortSignal | undefined,
): Promise<Payload> {
  const small: { readonly name: string; readonly bytes: Uint8Array }[] = [];
  let leftBytes = inlineBytesMax;
  for (const [index, [name, body]] of bodies.entries()) {
    const { bytes, whole, release } = await readAhead(body, leftBytes, signal);
    if (bytes === undefined) {
      const before = small.map((each): [string, Body] => [each.name, each.bytes]);
      try {
        return { files: await writeFiles(box, id, [...before, [name, whole], ...bodies.slice(index + 1)], signal) };
      } finally {
        release?.();
      }
    }
    small.push({ name, bytes });
    leftBytes -= bytes.length;
  }
  return {
    files: small.map(({ name, bytes }) => ({ name, size: bytes.length, sha256: sha256Of(bytes) })),
    inline: Object.fromEntries(small.map(({ name, bytes }) => [name, Buffer.from(bytes).toString("base64")])),
  };
}

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
  for (const [name, body] of bodies) {
    const { size, sha256 } = await writeBody(box.disk, `${directory}/${name}`, body, { signal });
    files.push({ name, size, sha256 });
  }
  await box.sync(directory, parentOf(directory));
  return files;
}

/** All bytes of a small body; of a larger one a body that begins with what was read. */
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
      // A source that was begun is ended also when the disk fails before it is asked for more.
      const release = (): void => void chunks.return(undefined).catch(() => undefined);
      return { whole: prepend(Buffer.concat([...read, next.value]), chunks), release };
    }
    // A copy: the source may use its buffer again.
    read.push(new Uint8Array(next.value));
  }
}

async function* prepend(bytes: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield bytes;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

function sha256Of(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}
