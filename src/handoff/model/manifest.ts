// The manifest: what a ticket says of the files that it hands over. Written once, never changed.
import { countOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";

export interface ManifestFile {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
  readonly records?: number;
  readonly contentType?: string;
}

export interface Manifest {
  readonly id: string;
  readonly key: string;
  readonly files: readonly ManifestFile[];
  readonly createdAt: Date;
  readonly producer: { readonly host: string; readonly pid: number; readonly name?: string };
  readonly group?: string;
  readonly priority: number;
  readonly notBefore?: Date;
  readonly expiresAt?: Date;
  readonly meta?: unknown;
}

/** A manifest as the ticket's file has it. */
export interface Ticket {
  readonly manifest: Manifest;
  /** Whether the key was chosen by the producer, and so has a name in `keys/`. */
  readonly isKeyed: boolean;
  /** In the name of a key: the holder in whose staging the ticket lies until it is entered. */
  readonly stagedBy?: string;
  /** The contents, if they are small enough to be in the ticket: base64 by file name. */
  readonly inline?: Readonly<Record<string, string>>;
}

export const priorityMax = 9;
export const priorityDefault = 5;

const sha256Pattern = /^[0-9a-f]{64}$/;

export const ticketKind: RecordKind<Ticket> = {
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

/** The body of a ticket's record, with its fields in the order in which people want to read them. */
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
  // Payloads and exports are made under this name: it must not lead out of their directory.
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
