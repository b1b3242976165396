// What a process keeps up to date from documents: the index that is built in, or one that the user gives.
import type { DerivedIndex } from "../model/derived-index.ts";
import { isWithin } from "../../format/path-key.ts";
import type { IndexedFile, IndexedText, TextIndex } from "../engine/text-index.ts";

export interface Engine {
  readonly index: DerivedIndex;
  /** Of two texts of one path that of the higher change counts, in whichever order they come. */
  put(files: readonly IndexedText[]): Promise<void>;
  /**
   * Removes `path` and all below it that an earlier change than `before` has brought. Gives what the index has lost
   * with that, and must get again.
   */
  drop(path: string, before: number): Promise<IndexedFile[]>;
  find(path: string): IndexedFile | undefined;
}

export class BuiltInEngine implements Engine {
  readonly index: TextIndex;

  constructor(index: TextIndex) {
    this.index = index;
  }

  async put(files: readonly IndexedText[]): Promise<void> {
    this.index.put(files);
  }

  async drop(path: string, before: number): Promise<IndexedFile[]> {
    this.index.drop(path, { before });
    return [];
  }

  find(path: string): IndexedFile | undefined {
    return this.index.find(path);
  }
}

/** An index that knows no changes: which one brought what is remembered here. */
export class GivenEngine implements Engine {
  readonly index: DerivedIndex;
  readonly #files = new Map<string, IndexedFile>();

  constructor(index: DerivedIndex) {
    this.index = index;
  }

  async put(files: readonly IndexedText[]): Promise<void> {
    for (const { path, text, vector, stamp, change } of files) {
      if ((this.#files.get(path)?.change ?? 0) > change) continue;
      await this.index.upsert(path, text, { vector, stamp });
      this.#files.set(path, { path, stamp, change });
    }
  }

  async drop(path: string, before: number): Promise<IndexedFile[]> {
    const lost: IndexedFile[] = [];
    const below = [...this.#files.values()].filter((file) => isWithin(file.path, path));
    for (const file of below) {
      if (file.change >= before) continue;
      await this.index.remove(file.path);
      this.#files.delete(file.path);
      // Where a file was, a directory may be now, and all below it went with the file.
      for (const other of below) if (other.change >= before && isWithin(other.path, file.path)) lost.push(other);
    }
    for (const file of lost) this.#files.delete(file.path);
    return lost;
  }

  find(path: string): IndexedFile | undefined {
    return this.#files.get(path);
  }
}

/** One index for all processes: the workers tell it what there is, and a process that only searches tells it nothing. */
export class SharedEngine implements Engine {
  readonly index: DerivedIndex;

  constructor(index: DerivedIndex) {
    this.index = index;
  }

  async put(): Promise<void> {
    // The worker has done it.
  }

  async drop(path: string): Promise<IndexedFile[]> {
    await this.index.remove(path);
    return [];
  }

  find(): undefined {
    return undefined;
  }
}
