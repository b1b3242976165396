// Reads an export: splits it into lines, and checks each against the previous one, up to the end record.
import { holdfastError, isHoldfastError, messageOf } from "../../errors.ts";
import { contentOf, decodeHead, findLineCrc, lineBytesMax, type LineHead } from "../log/format/line.ts";
import { hexOf } from "../log/format/tip.ts";
import { decodeStrictly } from "../verify/line-shape.ts";
import { decodeStart, findEnd } from "./export-record.ts";

const source = "The import";
const newline = 10;

export interface IncomingLine extends Pick<LineHead, "first" | "time" | "events" | "retag"> {
  readonly content: string;
  /** The number of the line in the export, from 1. */
  readonly number: number;
}

/** An export whose start record was read. */
export interface IncomingExport {
  /** Position of its last event. */
  readonly position: number;
  /** Throws CORRUPT if the export was truncated or altered; lines yielded before are sound. */
  readonly lines: AsyncIterable<IncomingLine>;
}

/** Throws CORRUPT for a text that is not an export; NEWER_FORMAT. */
export async function openExport(chunks: AsyncIterable<Uint8Array | string>): Promise<IncomingExport> {
  const pieces = cut(chunks);
  const { done, value } = await pieces.next();
  if (done === true) throw damaged(1, "the input is empty");
  const start = startOf(value);
  return { position: start.position, lines: linesOf(pieces, start) };
}

function startOf(bytes: Uint8Array): ReturnType<typeof decodeStart> {
  try {
    return decodeStart(bytes, source);
  } catch (cause) {
    if (!isHoldfastError(cause, "CORRUPT")) throw cause;
    throw damaged(1, "an export does not begin like this", cause);
  }
}

async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  { crc: start, position: total }: ReturnType<typeof decodeStart>,
): AsyncGenerator<IncomingLine, void> {
  let number = 1;
  let seed = start;
  let position = 0;
  for await (const bytes of pieces) {
    number++;
    const end = findEnd(bytes, source);
    if (end !== undefined) {
      if (end.lines !== number - 2 || end.position !== position || end.position !== total || end.last !== hexOf(seed))
        throw damaged(number, "its totals do not match the lines before it");
      return;
    }
    const crc = findLineCrc(bytes, seed);
    if (crc === undefined)
      throw damaged(number, "its checksum does not match: the line was altered, or a line is missing before it");
    seed = crc;
    const head = headOf(bytes, number);
    if (head.first !== position + 1)
      throw damaged(number, `it begins with position ${head.first}, not ${position + 1}`);
    position += head.events.length;
    yield { ...head, content: contentOf(bytes).content, number };
  }
  throw damaged(number + 1, "the export ends here, without its last record");
}

/** A matching checksum does not prove that a line is well-formed, so that is checked too. */
function headOf(bytes: Uint8Array, number: number): LineHead {
  try {
    decodeStrictly(bytes);
    return decodeHead(bytes);
  } catch (cause) {
    throw damaged(number, messageOf(cause), cause);
  }
}

async function* cut(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array, void> {
  let rest: Buffer[] = [];
  let length = 0;
  let number = 1;
  for await (const part of chunks) {
    const chunk =
      typeof part === "string" ? Buffer.from(part) : Buffer.from(part.buffer, part.byteOffset, part.byteLength);
    let start = 0;
    for (let end = chunk.indexOf(newline) + 1; end > 0; end = chunk.indexOf(newline, start) + 1) {
      const piece = chunk.subarray(start, end);
      yield rest.length === 0 ? piece : Buffer.concat([...rest, piece]);
      [rest, length, start] = [[], 0, end];
      number++;
    }
    if (start === chunk.length) continue;
    rest.push(chunk.subarray(start));
    length += chunk.length - start;
    if (length > lineBytesMax) throw damaged(number, `it has over ${lineBytesMax} bytes`);
  }
  if (length > 0) throw damaged(number, "it is incomplete");
}

function damaged(line: number, why: string, cause?: unknown): Error {
  const message = `Line ${line} of the import cannot be used: ${why}. Lines before it may be imported already. Make the export again, and repeat the import.`;
  return holdfastError("CORRUPT", message, { path: "(import)" }, cause);
}
