// A publication: what `publish` was asked to do, checked and with all defaults filled in; and its result.
import type { Body } from "../../common.ts";
import type { Manifest, ManifestFile } from "./manifest.ts";

/** A file of a publication, once it is written. */
export type WrittenFile = Pick<ManifestFile, "name" | "size" | "sha256">;

/** A publication. */
export interface Publication {
  readonly bodies: readonly (readonly [name: string, body: Body])[];
  readonly facts: Omit<Manifest, "id" | "key" | "files" | "createdAt" | "producer" | "notBefore" | "expiresAt">;
  /**
   * The key. Undefined: the id of the ticket is its key. A function is called once the files are
   * written.
   */
  readonly key?: string | ((files: readonly WrittenFile[]) => string) | undefined;
  readonly records: Readonly<Record<string, number>>;
  readonly contentTypes: Readonly<Record<string, string>>;
  /**
   * Sizes and digests that another program declared. The manifest has them even if they are wrong:
   * then the consumer's check fails, and the ticket becomes a dead letter.
   */
  readonly declared?: Readonly<Record<string, Declared>> | undefined;
  readonly delayMs?: number | undefined;
  readonly expiresMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /**
   * Called when the size is known and nothing is visible yet. Rejects if the box has no room for
   * the ticket.
   */
  readonly admit?: ((bytes: number, id: string) => Promise<void>) | undefined;
}

interface Declared {
  readonly size?: number | undefined;
  readonly sha256?: string | undefined;
}

/** The result of `publish`. */
export interface Published {
  /** The id of the ticket. */
  readonly id: string;
  /** The key of the ticket; its id if none was passed. */
  readonly key: string;
  /** True if the key was published before; `id` is then the id of the first ticket. */
  readonly duplicate: boolean;
}

/** Describes a written file as the manifest has it. */
export function describeFile(file: WrittenFile, { records, contentTypes, declared = {} }: Publication): ManifestFile {
  const { name } = file;
  const said = ownValue(declared, name);
  const count = ownValue(records, name);
  const contentType = ownValue(contentTypes, name);
  return {
    name,
    size: said?.size ?? file.size,
    sha256: said?.sha256 ?? file.sha256,
    ...(count === undefined ? {} : { records: count }),
    ...(contentType === undefined ? {} : { contentType }),
  };
}

/** Ignores inherited properties: a file may be named "constructor". */
function ownValue<T>(values: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(values, name) ? values[name] : undefined;
}
