// Engine: the index that a process keeps up to date from documents. It is built in, or passed by
// the user.
import type { DerivedIndex } from "../model/derived-index.ts";
import { EventLoopYield } from "../../durable/wait/event-loop-yield.ts";
import type { Clock } from "../../ports/clock.ts";
import { isWithin } from "../../format/path-key.ts";
import type { IndexedFile, IndexedText, TextIndex } from "../engine/text-index.ts";

export interface Engine {
  readonly index: DerivedIndex;
  /** If a path has two texts, the one with the higher change counts, in whichever order they arrive. */
  put(files: readonly IndexedText[]): Promise<void>;
  /**
   * Removes everything at or below `path` that a change before `before` brought. Returns files that
   * the index lost as well and must get again.
   */
  drop(path: string, before: number): Promise<IndexedFile[]>;
  find(path: string): IndexedFile | undefined;
}

/** SQLite blocks while it works, so it gets little at a time: a few files, or one long text. */
const filesPerStep = 64;
const textPerStep = 64 * 1024;

export class BuiltInEngine implements Engine {
  readonly index: TextIndex;
  readonly #clock: Clock;

  constructor(index: TextIndex, clock: Clock) {
    this.index = index;
    this.#clock = clock;
  }

  async put(files: readonly IndexedText[]): Promise<void> {
    const pause = new EventLoopYield(this.#clock);
    for (const step of stepsOf(files)) {
      this.index.put(step);
      if (pause.isDue) await pause.take();
    }
  }

  /** A search in between may find a file that is not dropped yet, and checks if it exists. */
  async drop(path: string, before: number): Promise<IndexedFile[]> {
    const pause = new EventLoopYield(this.#clock);
    while (this.index.drop(path, { before, limit: filesPerStep }) === filesPerStep) if (pause.isDue) await pause.take();
    return [];
  }

  find(path: string): IndexedFile | undefined {
    return this.index.find(path);
  }
}

function* stepsOf(files: readonly IndexedText[]): Generator<readonly IndexedText[]> {
  let step: IndexedText[] = [];
  let length = 0;
  for (const file of files) {
    step.push(file);
    length += file.text.length;
    if (step.length < filesPerStep && length < textPerStep) continue;
    yield step;
    step = [];
    length = 0;
  }
  if (step.length > 0) yield step;
}

/** An index that does not record changes: this class remembers which change brought each file. */
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
    const kept = below.filter((file) => file.change >= before);
    for (const file of below) {
      if (file.change >= before) continue;
      await this.index.remove(file.path);
      this.#files.delete(file.path);
      // A directory may now have the name of a file, and everything below it was removed with the
      // file.
      for (const other of kept) if (isWithin(other.path, file.path)) lost.push(other);
    }
    for (const file of lost) this.#files.delete(file.path);
    return lost;
  }

  find(path: string): IndexedFile | undefined {
    return this.#files.get(path);
  }
}

/** One index for all processes: the workers update it. A process that only searches does not. */
export class SharedEngine implements Engine {
  readonly index: DerivedIndex;

  constructor(index: DerivedIndex) {
    this.index = index;
  }

  async put(): Promise<void> {
    // The worker has updated the index.
  }

  async drop(path: string): Promise<IndexedFile[]> {
    await this.index.remove(path);
    return [];
  }

  find(): undefined {
    return undefined;
  }
}
