// The manifest: a ticket's description of its files. Written once, never changed.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";

/** A file of a ticket. */
export interface ManifestFile {
  /** The file name, without a directory. */
  readonly name: string;
  /** Size in bytes. */
  readonly size: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
  /** The record count that the producer declared, if any. */
  readonly records?: number;
  /** The content type that the producer declared, if any. */
  readonly contentType?: string;
}

/** The description of a ticket. Written once and never changed. */
export interface Manifest {
  /** Unique; sorts by the time of publication. */
  readonly id: string;
  /** The idempotency key; the id if the producer passed none. */
  readonly key: string;
  /** The files of the ticket. */
  readonly files: readonly ManifestFile[];
  /** When the ticket was published, by the server's clock. */
  readonly createdAt: Date;
  /** The process that published the ticket. */
  readonly producer: {
    /** Host name of its machine. */
    readonly host: string;
    /** Process id on that machine. */
    readonly pid: number;
    /** Its name, if it recorded one. */
    readonly name?: string;
  };
  /** The group, if any: its tickets are delivered in order, one at a time. */
  readonly group?: string;
  /** 0 is delivered first, 9 last. */
  readonly priority: number;
  /** The ticket is not delivered before this time. Absent without a delay. */
  readonly notBefore?: Date;
  /** The ticket is not delivered after this time. Absent if it never expires. */
  readonly expiresAt?: Date;
  /** The JSON that the producer passed as `meta`, if any. */
  readonly meta?: unknown;
}

/** A manifest as stored in the ticket's file. */
export interface Ticket {
  readonly manifest: Manifest;
  /** True if the producer chose the key, which therefore has a file in `keys/`. */
  readonly isKeyed: boolean;
  /** Only in a key file: the holder in whose staging the ticket waits until it enters the queue. */
  readonly stagedBy?: string;
  /** The contents in base64 by file name, if they are small enough to be stored in the ticket. */
  readonly inline?: Readonly<Record<string, string>>;
}

export const priorityMax = 9;
export const priorityDefault = 5;

const sha256Pattern = /^[0-9a-f]{64}$/;

export const ticketKind: RecordKind<Ticket> = {
  mayBeDirectory: true,
  kind: "ticket",
  decode: (value) => {
    const fields = objectOf(value);
    const { inline, isKeyed } = fields;
    const files = listOf(fields.files, fileOf);
    const ticket: Ticket = {
      isKeyed: isKeyed === true,
      ...optional("stagedBy", fields.stagedBy, idOf),
      manifest: {
        id: idOf(fields.id),
        key: textOf(fields.key),
        files,
        createdAt: dateOf(fields.createdAt),
        producer: producerOf(fields.producer),
        priority: priorityOf(fields.priority),
        ...optional("group", fields.group, textOf),
        ...optional("notBefore", fields.notBefore, dateOf),
        ...optional("expiresAt", fields.expiresAt, dateOf),
        ...(fields.meta === undefined ? {} : { meta: fields.meta }),
      },
    };
    if (inline === undefined) return ticket;
    const contents = objectOf(inline);
    return { ...ticket, inline: Object.fromEntries(files.map(({ name }) => [name, textOf(contents[name])])) };
  },
};

/**
 * Encodes a ticket. The result is not decoded as a check: `publish` checked its arguments, and
 * everything else is made here.
 */
export function encodeTicket(ticket: Ticket): Uint8Array {
  return encodeRecord({ kind: ticketKind.kind, decode: (body) => body }, ticketBody(ticket), { isChecked: true });
}

/** Returns the body of a ticket's record. The order of the fields is for people who read the file. */
export function ticketBody({ manifest, isKeyed, stagedBy, inline }: Ticket): unknown {
  const { id, key, files, createdAt, producer, group, priority, notBefore, expiresAt, meta } = manifest;
  return {
    id,
    key,
    isKeyed,
    stagedBy,
    files,
    createdAt,
    producer,
    group,
    priority,
    notBefore,
    expiresAt,
    meta,
    inline,
  };
}

function fileOf(value: unknown): ManifestFile {
  const fields = objectOf(value);
  const sha256 = textOf(fields.sha256);
  if (!sha256Pattern.test(sha256)) throw new TypeError("not a SHA-256");
  const name = textOf(fields.name);
  // Payloads and exports use this name: it must not lead out of their directory.
  if (["", ".", ".."].includes(name) || /[/\\\0]/.test(name)) throw new TypeError("not the name of a file");
  return {
    name,
    size: countOf(fields.size),
    sha256,
    ...optional("records", fields.records, countOf),
    ...optional("contentType", fields.contentType, textOf),
  };
}

function producerOf(value: unknown): Manifest["producer"] {
  const fields = objectOf(value);
  return { host: textOf(fields.host), pid: countOf(fields.pid), ...optional("name", fields.name, textOf) };
}

function priorityOf(value: unknown): number {
  const priority = countOf(value);
  if (priority > priorityMax) throw new TypeError("not a priority");
  return priority;
}

function idOf(value: unknown): string {
  const id = textOf(value);
  if (!isId(id)) throw new TypeError("not an id");
  return id;
}

function dateOf(value: unknown): Date {
  const date = new Date(textOf(value));
  if (Number.isNaN(date.getTime())) throw new TypeError("not a time");
  return date;
}

function optional<K extends string, T>(name: K, value: unknown, decode: (value: unknown) => T): { [P in K]?: T } {
  return (value === undefined ? {} : { [name]: decode(value) }) as { [P in K]?: T };
}
