// The key of a path below the root of the locks: normalised, symbolic links resolved, folded where the disk is. One key per file, whatever exists there.
import { decideRecord, findDecision } from "../durable/record-file.ts";
import { discard, stage, type Staging } from "../durable/staging.ts";
import { holdfastError } from "../errors.ts";
import { flagOf, objectOf, textOf } from "../format/decoding.ts";
import { randomName } from "../format/id.ts";
import { cleanPath, pathKey, type PathKeyOptions } from "../format/path-key.ts";
import type { RecordKind } from "../format/record.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Disk } from "../ports/disk.ts";
import { follow } from "./followed-path.ts";

/** What the rest of the locks needs of keys. */
export type Keys = Pick<LockKeys, "clean" | "locate" | "keyOf">;

export interface Located {
  /** Below the root and without symbolic links, as it is spelled on the disk. */
  readonly path: string;
  readonly key: string;
}

export class LockKeys {
  readonly root: string;
  readonly #disk: Disk;
  readonly #realRoot: string;
  readonly #options: PathKeyOptions;

  private constructor(disk: Disk, root: string, realRoot: string, options: PathKeyOptions) {
    this.root = root;
    this.#disk = disk;
    this.#realRoot = realRoot;
    this.#options = options;
  }

  /** How names are compared is decided once and recorded in `directory`: two processes with two answers would have two keys for one file. */
  static async open(staging: Staging, root: string, directory: string): Promise<LockKeys> {
    const path = `${directory}/names.json`;
    const decided =
      (await findDecision(staging.disk, namesKind, path)) ??
      (await decideRecord(staging, namesKind, path, {
        id: randomName(staging.random.bytes(16)),
        caseSensitive: await isCaseSensitive(staging),
      }));
    return new LockKeys(staging.disk, root, await staging.disk.realPath(root), decided);
  }

  /** `path` as the caller meant it, below the root: relative, or absolute and inside. INVALID_PATH. */
  clean(path: string): string {
    const outer = `${this.root === "/" ? "" : this.root}/`;
    return cleanPath(path === this.root ? "" : path.startsWith(outer) ? path.slice(outer.length) : path);
  }

  /** INVALID_PATH, also for a path that leads out of the root through a symbolic link. */
  async keyOf(clean: string): Promise<string> {
    return (await this.locate(clean)).key;
  }

  /** Where `clean` leads. INVALID_PATH as above. */
  async locate(clean: string): Promise<Located> {
    const isPlain = clean === "" || !(await this.#disk.hasLink(this.#realRoot, clean));
    const path = isPlain ? clean : await this.#follow(clean);
    return { path, key: pathKey(path, this.#options) };
  }

  async #follow(clean: string): Promise<string> {
    try {
      return this.#inside((await follow(this.#disk, `${this.#realRoot}/${clean}`)).path, clean);
    } catch (error) {
      if (hasErrno(error, "ELOOP")) throw outside(clean, "a symbolic link in it leads in a circle", error);
      throw error;
    }
  }

  #inside(real: string, clean: string): string {
    if (real === this.#realRoot) return "";
    const outer = this.#realRoot === "/" ? "/" : `${this.#realRoot}/`;
    if (real.startsWith(outer)) return real.slice(outer.length);
    throw outside(clean, `a symbolic link in it leads to ${real}, out of the root`);
  }
}

function outside(path: string, why: string, cause?: unknown): Error {
  return holdfastError("INVALID_PATH", `The path ${JSON.stringify(path)} cannot be locked: ${why}.`, { path }, cause);
}

interface Names {
  readonly id: string;
  readonly caseSensitive: boolean;
}

const namesKind: RecordKind<Names> = {
  kind: "names",
  decode: (value) => {
    const { id, caseSensitive } = objectOf(value);
    return { id: textOf(id), caseSensitive: flagOf(caseSensitive) };
  },
};

async function isCaseSensitive(staging: Staging): Promise<boolean> {
  const probe = await stage(staging, new Uint8Array(), {
    sync: false,
    path: `${await staging.directory()}/case-${randomName(staging.random.bytes(16))}`,
  });
  try {
    return !(await staging.disk.canOpen(probe.replace(/case-.*$/, (name) => name.toUpperCase())));
  } finally {
    await discard(staging, probe);
  }
}
