// Real files for programs that need a path: copies in a folder of this machine.
import { removeTree } from "../../durable/publish/directory.ts";
import type { ManifestFile } from "../../handoff/model/manifest.ts";
import { writeBody } from "../../part/body.ts";
import type { MakeScratch, PgBox } from "./pg-box.ts";

/**
 * The folder of a parked claim. The process that settles the claim removes it, if it runs on that
 * machine.
 */
export interface KeptFolder {
  readonly host: string;
  readonly path: string;
}

export class PayloadPaths {
  readonly #box: PgBox;
  readonly #read: (file: ManifestFile) => AsyncIterable<Uint8Array>;
  readonly #kept: KeptFolder | undefined;
  #folder: ReturnType<MakeScratch> | undefined;
  readonly #written = new Map<string, Promise<string>>();

  /** `kept`: the folder that was kept when this claim was parked. */
  constructor(box: PgBox, read: (file: ManifestFile) => AsyncIterable<Uint8Array>, kept?: KeptFolder) {
    this.#box = box;
    this.#read = read;
    this.#kept = kept;
  }

  /** Returns a path that is valid until `remove`. */
  async path(file: ManifestFile): Promise<string> {
    let writing = this.#written.get(file.name);
    if (writing === undefined) {
      writing = this.#write(file);
      this.#written.set(file.name, writing);
      writing.catch(() => this.#written.delete(file.name));
    }
    return await writing;
  }

  /** Writes all files for the program that continues with the parked claim. */
  async keep(
    files: readonly ManifestFile[],
  ): Promise<{ readonly folder: KeptFolder; readonly paths: Readonly<Record<string, string>> }> {
    const paths: [string, string][] = [];
    for (const file of files) paths.push([file.name, await this.path(file)]);
    const { path } = await this.#open();
    return { folder: { host: this.#box.ground.ports.host.name, path }, paths: Object.fromEntries(paths) };
  }

  /** Leaves the folder in place: it belongs to the parked claim now. */
  release(): void {
    this.#folder = undefined;
  }

  /**
   * Removes the folder. Files that cannot be removed stay until the system clears its temporary
   * files.
   */
  async remove(): Promise<void> {
    const kept = this.#kept?.host === this.#box.ground.ports.host.name ? this.#kept.path : undefined;
    const folder = await (kept === undefined ? this.#folder : this.#open())?.catch(() => undefined);
    if (folder === undefined) return;
    for (const path of [folder.path, ...(kept === undefined ? [] : [kept])])
      await removeTree(folder.disk, path).catch(() => undefined);
  }

  async #write(file: ManifestFile): Promise<string> {
    const { disk, path } = await this.#open();
    await writeBody(disk, `${path}/${file.name}`, this.#read(file));
    return `${path}/${file.name}`;
  }

  async #open(): Promise<Awaited<ReturnType<MakeScratch>>> {
    return await (this.#folder ??= this.#box.makeScratch());
  }
}
