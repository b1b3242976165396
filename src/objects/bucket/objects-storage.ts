// ObjectsStorage is an open object store: its ground, the directories of this session, and shared
// syncs.
import { posix } from "node:path";
import { ensureDirectory, parentOf } from "../../durable/publish/directory.ts";
import type { Ground } from "../../durable/liveness/ground.ts";
import { SharedSync } from "../../durable/publish/shared-sync.ts";
import { discard, newTemp, stage } from "../../durable/publish/staging.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { randomName } from "../../format/id.ts";
import { Reserve } from "../../part/reserve.ts";
import type { Disk } from "../../ports/disk.ts";
import type { KeyStorage, NewEntry, StagedEntry } from "../key/key-storage.ts";
import { encodeEntry } from "../model/entry.ts";
import { ObjectsLayout } from "./layout.ts";

export class ObjectsStorage implements KeyStorage {
  readonly ground: Ground;
  readonly layout: ObjectsLayout;
  readonly isSynced: boolean;
  /** Removals write through this reserve, so that they succeed even on a full disk. */
  readonly reserve: Reserve;
  readonly #shared: SharedSync;
  /** Directories of this session. Each is created once. */
  readonly #own = new Map<string, Promise<void>>();

  #stagings: Promise<void> | undefined;

  constructor(
    ground: Ground,
    directory: string,
    { isSynced = true }: { readonly isSynced?: boolean | undefined } = {},
  ) {
    this.ground = ground;
    this.layout = new ObjectsLayout(directory);
    this.isSynced = isSynced;
    this.#shared = new SharedSync(ground.ports.disk);
    this.reserve = new Reserve(ground.staging, this.layout.reserve);
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

  readonly stage = async ({ entry, inline, stageIn }: NewEntry): Promise<StagedEntry> => {
    const proof = encodeEntry(entry);
    const bytes = inline === undefined ? proof : Buffer.concat([proof, inline]);
    const path = stageIn === undefined ? undefined : newTemp(this.staging, stageIn);
    return { entry, proof, temp: await stage(this.staging, bytes, { sync: this.isSynced, path }) };
  };

  readonly unstage = async (temp: string): Promise<void> => await discard(this.staging, temp);

  readonly prepared = async (temp: string): Promise<string> => {
    // `temp` may belong to an earlier session. The directory is prepared for that session, so that
    // a sweeper removes both together.
    const holder = posix.basename(parentOf(temp));
    await (this.#stagings ??= ensureDirectory(this.disk, this.layout.stagings));
    return await this.makeOwn(this.layout.staging(holder));
  };

  /**
   * Creates a directory named after this session, once. If it is missing later, other processes
   * took the session for dead, so it is not created again.
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
