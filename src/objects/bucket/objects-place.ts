// An object store that is open: its ground, the directories of this session, and shared syncs.
import { posix } from "node:path";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { randomName } from "../../format/id.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyPlace } from "../key/key-place.ts";
import { ObjectsLayout } from "./layout.ts";

export interface PlaceOptions {
  /** Default true. */
  readonly isSynced?: boolean | undefined;
}

export class ObjectsPlace implements KeyPlace {
  readonly ground: Ground;
  readonly layout: ObjectsLayout;
  readonly isSynced: boolean;
  readonly #shared: SharedSync;
  /** Directories of this process: made once in a session, and never again in it. */
  readonly #own = new Map<string, Promise<void>>();

  #stagings: Promise<void> | undefined;

  constructor(ground: Ground, directory: string, { isSynced = true }: PlaceOptions = {}) {
    this.ground = ground;
    this.layout = new ObjectsLayout(directory);
    this.isSynced = isSynced;
    this.#shared = new SharedSync(ground.ports.disk);
  }

  get disk(): Disk {
    return this.ground.ports.disk;
  }

  get staging(): Ground["staging"] {
    return this.ground.staging;
  }

  readonly sync = async (...directories: readonly string[]): Promise<void> => {
    if (this.isSynced) await Promise.all(directories.map((each) => this.#shared.sync(each)));
  };

  readonly prepared = async (temp: string): Promise<string> => {
    // Of that session, not of the present one: what it has staged must be swept together.
    const holder = posix.basename(parentOf(temp));
    await (this.#stagings ??= ensureDirectory(this.disk, this.layout.stagings));
    return await this.makeOwn(this.layout.staging(holder));
  };

  /**
   * Makes a directory that is named after this session, once. A session that finds it gone was taken
   * for dead: it is not made again.
   */
  async makeOwn(directory: string): Promise<string> {
    let made = this.#own.get(directory);
    if (made === undefined) {
      made = makeUniqueDirectory(this.disk, directory).then(() => this.sync(parentOf(directory)));
      this.#own.set(directory, made);
      made.catch(() => this.#own.delete(directory));
    }
    await made;
    return directory;
  }

  newId(): string {
    return randomName(this.ground.ports.random.bytes(16));
  }

  nowMs(): number {
    return Math.max(0, Math.floor(this.ground.ports.clock.wallMs()));
  }
}
