// The body of a form upload: fields first, and the file as the last part, which is streamed.
import { S3Error } from "../http/s3-error.ts";

export interface Form {
  /** Names in lower case. */
  readonly fields: ReadonlyMap<string, string>;
  readonly fileName: string;
  readonly fileType: string | undefined;
  /** Must be read to its end. */
  readonly file: AsyncIterable<Uint8Array>;
}

const fieldsMax = 100;
const fieldBytesMax = 20 * 1024;
/** Limit of all fields together: they are kept in memory before the signature can be checked. */
const fieldsBytesMax = 64 * 1024;
const headBytesMax = 4096;
/**
 * Time limit for everything before the file: it is read before the signature can be checked. The
 * pace limits apply in addition.
 */
const fieldsMsMax = 60_000;
/** Limit of the bytes after the file. They are ignored. */
const restBytesMax = 64 * 1024;

/**
 * Throws MalformedPOSTRequest, MaxMessageLengthExceeded for fields that are too large, or
 * RequestTimeout.
 */
export async function readForm(
  contentType: string,
  source: AsyncIterable<Uint8Array>,
  { msMax = fieldsMsMax }: { readonly msMax?: number } = {},
): Promise<Form> {
  const boundary = /^multipart\/form-data\s*;.*\bboundary=(?:"([^"]{1,70})"|([^\s;]{1,70}))/i.exec(contentType);
  const name = boundary?.[1] ?? boundary?.[2];
  if (name === undefined)
    throw new S3Error("MalformedPOSTRequest", {
      message: "The body of your POST request is not well-formed multipart/form-data.",
    });
  const parts = new FieldReader(source, Buffer.from(`\r\n--${name}`), performance.now() + msMax);
  await parts.skipPreamble();
  const fields = new Map<string, string>();
  let all = 0;
  for (let count = 0; count < fieldsMax; count++) {
    const head = await parts.head();
    if (head === undefined)
      throw new S3Error("InvalidArgument", {
        message: "POST requires exactly one file upload per request.",
        details: { ArgumentName: "file", ArgumentValue: "0" },
      });
    const field = parameterOf(head, "name")?.toLowerCase();
    if (field === undefined) throw new S3Error("MalformedPOSTRequest");
    if (field === "file") {
      const fileType = /^content-type:\s*(.+)$/im.exec(head)?.[1]?.trim();
      // Some browsers send the whole path as the file name.
      const fileName = (parameterOf(head, "filename") ?? "").replace(/^.*[\\/]/, "");
      return { fields, fileName, fileType, file: parts.last() };
    }
    const pieces: Uint8Array[] = [];
    let length = 0;
    for await (const piece of parts.content()) {
      length += piece.length;
      all += piece.length;
      if (length > fieldBytesMax) throw new S3Error("MaxMessageLengthExceeded");
      if (all > fieldsBytesMax) throw new S3Error("MaxPostPreDataLengthExceeded");
      pieces.push(piece);
    }
    fields.set(field, Buffer.concat(pieces).toString("utf8"));
  }
  throw new S3Error("MalformedPOSTRequest");
}

function parameterOf(head: string, name: string): string | undefined {
  const disposition = /^content-disposition:\s*form-data(.*)$/im.exec(head)?.[1] ?? "";
  const match = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^;\\s]+))`, "i").exec(disposition);
  return match?.[1]?.replace(/\\(.)/g, "$1") ?? match?.[2];
}

/** Finds the parts between boundaries. Holds at most two chunks of the stream. */
class FieldReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #boundary: Buffer;
  /** Begins as if a line had ended before the first boundary. */
  #rest: Buffer = Buffer.from("\r\n");
  #isOver = false;
  /** The time limit, by the clock of `performance.now()`. */
  #deadlineMs: number;

  constructor(source: AsyncIterable<Uint8Array>, boundary: Buffer, deadlineMs: number) {
    this.#source = source[Symbol.asyncIterator]();
    this.#boundary = boundary;
    this.#deadlineMs = deadlineMs;
  }

  async skipPreamble(): Promise<void> {
    let length = 0;
    for await (const piece of this.content()) {
      length += piece.length;
      if (length > headBytesMax) throw new S3Error("MalformedPOSTRequest");
    }
  }

  /** Returns the header lines of the next part; undefined after the last one. */
  async head(): Promise<string | undefined> {
    while (this.#rest.length < 2) await this.#more();
    if (this.#rest.subarray(0, 2).toString() === "--") return undefined;
    for (;;) {
      const end = this.#rest.indexOf("\r\n\r\n");
      // The limit does not depend on how the network splits the data. A name this long is an
      // attempt to inflate the key.
      if (end > headBytesMax) throw new S3Error("MalformedPOSTRequest");
      if (end >= 0) {
        const head = this.#rest.subarray(0, end).toString("utf8");
        this.#rest = this.#rest.subarray(end + 4);
        return head;
      }
      if (this.#rest.length > headBytesMax) throw new S3Error("MalformedPOSTRequest");
      await this.#more();
    }
  }

  /** Yields the bytes up to the next boundary, and consumes the boundary. */
  async *content(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const at = this.#rest.indexOf(this.#boundary);
      if (at >= 0) {
        const piece = this.#rest.subarray(0, at);
        this.#rest = this.#rest.subarray(at + this.#boundary.length);
        if (piece.length > 0) yield piece;
        return;
      }
      // The end of the buffer may be the beginning of a boundary.
      const safe = this.#rest.length - this.#boundary.length + 1;
      if (safe > 0) {
        const piece = this.#rest.subarray(0, safe);
        this.#rest = this.#rest.subarray(safe);
        yield piece;
      }
      await this.#more();
    }
  }

  /** Like `content`; then skips everything up to the end of the stream. */
  async *last(): AsyncGenerator<Uint8Array> {
    this.#deadlineMs = Infinity;
    yield* this.content();
    let length = this.#rest.length;
    for (let next = await this.#source.next(); next.done !== true; next = await this.#source.next()) {
      length += next.value.length;
      if (length > restBytesMax) throw new S3Error("MalformedPOSTRequest");
    }
  }

  async #more(): Promise<void> {
    const next = this.#isOver ? undefined : await this.#source.next();
    if (next === undefined || next.done === true) {
      this.#isOver = true;
      throw new S3Error("IncompleteBody");
    }
    if (performance.now() > this.#deadlineMs) throw new S3Error("RequestTimeout");
    this.#rest = Buffer.concat([this.#rest, next.value]);
  }
}
