// Copier reads files of a store for a backup: whole, or again if they changed meanwhile.
import { listIfThere } from "../../durable/publish/directory.ts";
import { RollingChain } from "../../durable/chain/rolling-chain.ts";
import { epochKind } from "../../durable/chain/epoch.ts";
import { encodeEpochOf } from "../../durable/chain/only-epoch.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { countOf, objectOf, textOf } from "../../format/decoding.ts";
import { findSlotNumber } from "../../format/name.ts";
import { decodeRecord, recordBytesMax, type RecordKind } from "../../format/record.ts";
import { tableKind } from "../../locks/table/request.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import type { Disk, FileStat } from "../../ports/disk.ts";
import type { Ports } from "../../ports/ports.ts";
import type { BackupWriter } from "./backup-writer.ts";
import type { FileEntry } from "../model.ts";

/** How many files are read at a time. */
export const readsAtOnce = 16;
/** A file that changes while it is read is read at most this many times. */
const readsMax = 3;
/** Two changes within this time may leave the same time stamp: file systems count in steps of up to two seconds. */
const stampMs = 5_000;
/** Only the numbers of a lock table are read, so every format is welcome. */
const tableEpochKind: RecordKind<unknown> = {
  kind: epochKind(tableKind, { hasDeltas: true }).kind,
  newestFormat: Number.MAX_SAFE_INTEGER,
  decode: (value) => value,
};

export interface CopyOptions {
  /** True for a file that is never changed under its name. Default false. */
  readonly isFinal?: boolean;
  /** Copies only this many bytes. Default: all. */
  readonly length?: number;
  /** Identifies the content of the file. Default: made from its metadata. */
  readonly stamp?: string;
  /** True to copy the permissions, as for a user's file. Default false. */
  readonly hasMode?: boolean;
}

export class Copier {
  readonly ports: Ports;
  readonly disk: Disk;
  readonly store: string;
  readonly writer: BackupWriter;
  /** Files that changed each time they were read, and were not copied as they are since. */
  readonly torn: Set<string> = new Set<string>();
  /** The first path of each file that has several names, by identity. */
  readonly #names = new Map<string, { readonly path: string; readonly stat: FileStat }>();

  constructor(ports: Ports, store: string, writer: BackupWriter) {
    this.ports = ports;
    this.disk = ports.disk;
    this.store = store;
    this.writer = writer;
  }

  /** The absolute path of a file of the store. */
  at(path: string): string {
    return `${this.store}/${path}`;
  }

  /** Copies a file under the same path. Returns false if it does not exist. */
  async copy(path: string, options: CopyOptions = {}): Promise<boolean> {
    return await this.copyAs(path, path, options);
  }

  /** Copies the file `from` of the store as `path`. */
  async copyAs(path: string, from: string, options: CopyOptions = {}): Promise<boolean> {
    await this.writer.checkpoint();
    const stat = await this.disk.findStat(this.at(from));
    if (stat?.kind !== "file") return false;
    if (this.#isKnown(path, stat, options)) return true;
    for (let reads = 1; ; reads++) {
      const read = await this.#read(path, from, options);
      if (read === undefined) return false;
      if (!read.isSame && reads < readsMax) continue;
      this.writer.add(read.entry);
      if (read.isSame) this.torn.delete(path);
      else this.torn.add(path);
      return true;
    }
  }

  /** Copies a file that may have other names: they become names of one copy again. */
  async copyNamed(path: string, options: CopyOptions = {}): Promise<boolean> {
    const stat = await this.disk.findStat(this.at(path));
    if (stat?.kind !== "file") return false;
    const first = this.#names.get(stat.identity);
    if (first !== undefined && first.path !== path && (await this.#isSame(first, stat))) {
      this.writer.add({ kind: "same", path, of: first.path });
      return true;
    }
    this.#names.set(stat.identity, { path, stat });
    return await this.copy(path, options);
  }

  /**
   * Two names of one file, and not of two files of which one got the inode that the other left: the first name still
   * leads there, and the content is that of then. Another name changes the ctime.
   */
  async #isSame({ path, stat }: { readonly path: string; readonly stat: FileStat }, now: FileStat): Promise<boolean> {
    if (this.writer.entries.get(path)?.kind !== "file") return false;
    if (stat.size !== now.size || stat.mtimeMs !== now.mtimeMs) return false;
    return (await this.disk.findStat(this.at(path)))?.identity === now.identity;
  }

  /** Copies these files, several at a time. Returns those that do not exist. */
  async copyAll(paths: readonly string[], options: CopyOptions = {}): Promise<string[]> {
    const missing: string[] = [];
    await inParallel(paths, readsAtOnce, async (path) => {
      if (!(await this.copy(path, options))) missing.push(path);
    });
    return missing;
  }

  directory(path: string): void {
    this.writer.add({ kind: "directory", path });
  }

  /** Returns the names in a directory of the store; an empty list if it does not exist. */
  async names(path: string): Promise<string[]> {
    return (await listIfThere(this.disk, this.at(path))).sort();
  }

  /**
   * Returns the names of the numbered files in a directory. A file that is added while the directory is listed may be
   * in the listing without the one before it: then the directory is listed again.
   */
  async slots(path: string): Promise<string[]> {
    for (let before = ""; ;) {
      const names = (await this.names(path)).filter((name) => findSlotNumber(name) !== undefined);
      const first = Number(names[0]);
      const listing = names.join("\n");
      // The same gap twice: a file is lost. All others are copied, as they are.
      if (listing === before || names.every((name, index) => Number(name) === first + index)) return names;
      before = listing;
    }
  }

  /** Reads the newest state of a rolling chain; undefined if there is no chain. */
  async chainState(ground: Ground, path: string, kind: string): Promise<RollingState | undefined> {
    if (!(await this.names(`${path}/epochs`)).some((name) => findSlotNumber(name) !== undefined)) return undefined;
    const record: RecordKind<unknown> = { kind, decode: (state) => state };
    const { bootId } = ground.ports.host;
    const counts = async (): Promise<undefined> => undefined;
    const chain = await RollingChain.open(ground.staging, this.at(path), { kind: record, initial: {}, counts, bootId });
    return await chain.read();
  }

  /** Writes a chain whose only state is this one. Its numbers continue. */
  async putChain(path: string, kind: string, { number, state }: RollingState): Promise<void> {
    const random = this.ports.random.bytes(16);
    const epoch = { from: number, base: state, synced: true, deltas: false };
    for (const file of encodeEpochOf(kind, epoch, random)) await this.writer.put(`${path}/${file.name}`, file.bytes);
  }

  /** Copies a chain that discards old states. Returns its newest state; undefined if there is no chain. */
  async copyChain(ground: Ground, path: string, kind: string): Promise<unknown> {
    const found = await this.chainState(ground, path, kind);
    if (found !== undefined) await this.putChain(path, kind, found);
    return found?.state;
  }

  /** Copies the records of a ground, and how far the numbers of its lock table had come. */
  async copyGround(path: string): Promise<void> {
    if (!(await this.copy(`${path}/ground.json`))) return;
    // A process that only reads expects them.
    for (const name of ["holders", "temp"]) this.directory(`${path}/${name}`);
    if (!(await this.copy(`${path}/names.json`))) return;
    for (const name of ["holds", "redo", "done", "trash"]) this.directory(`${path}/${name}`);
    const table = `${path}/table`;
    const newest = (await this.names(`${table}/epochs`)).findLast((name) => findSlotNumber(name) !== undefined);
    if (newest === undefined) return;
    const record = await this.disk.readFile(this.at(`${table}/epochs/${newest}`), recordBytesMax);
    const epoch = objectOf(objectOf(decodeRecord(tableEpochKind, record, table)).body);
    const slots = (await this.names(`${table}/${textOf(epoch.directory)}`)).map((name) => findSlotNumber(name) ?? 0);
    const number = countOf(epoch.from) + slots.reduce((highest, slot) => Math.max(highest, slot), 0);
    this.writer.add({ kind: "table", path: table, number, deltas: epoch.deltas === true });
  }

  #isKnown(path: string, stat: FileStat, options: CopyOptions): boolean {
    const { writer } = this;
    const copied = writer.entries.get(path);
    const known = copied?.kind === "file" ? copied : writer.previous.get(path);
    if (known?.stamp === undefined || known.stamp !== (options.stamp ?? stampOf(stat, options))) return false;
    if (known.size !== (options.length ?? stat.size)) return false;
    if (known === copied) return true;
    if (!writer.hasAll(known)) return false;
    writer.reuse(options.hasMode === true ? { ...known, ...modeOf(stat) } : known);
    return true;
  }

  async #read(path: string, from: string, options: CopyOptions): Promise<ReadFile | undefined> {
    const file = await this.disk.open(this.at(from), "read").catch((error: unknown) => {
      if (hasErrno(error, "ENOENT", "ENOTDIR", "ESTALE")) return undefined;
      throw error;
    });
    if (file === undefined) return undefined;
    try {
      const before = await file.stat();
      const length = options.length ?? before.size;
      const read = await this.writer.read(file, length);
      const isFinal = options.isFinal === true || options.stamp !== undefined;
      const isSame = isFinal || stampOf(await file.stat(), {}) === stampOf(before, {});
      const isSettled = isFinal || this.ports.clock.wallMs() - before.ctimeMs > stampMs;
      const stamp = options.stamp ?? stampOf(before, options);
      const entry: FileEntry = {
        ...{ kind: "file", path, ...read },
        ...(isSame && isSettled ? { stamp } : {}),
        ...(options.hasMode === true ? modeOf(before) : {}),
      };
      return { entry, isSame };
    } finally {
      await file.close();
    }
  }
}

interface RollingState {
  readonly number: number;
  readonly state: unknown;
}

interface ReadFile {
  readonly entry: FileEntry;
  readonly isSame: boolean;
}

/** Leaves out the ctime of a final file: a rename or a further link changes it, and the content never changes. */
function stampOf({ identity, size, mtimeMs, ctimeMs }: FileStat, { isFinal = false }: CopyOptions): string {
  return [identity, size, mtimeMs, ...(isFinal ? [] : [ctimeMs])].join(" ");
}

function modeOf({ mode }: FileStat): Pick<FileEntry, "mode"> {
  return mode === undefined ? {} : { mode: mode & 0o777 };
}
