// Derived data in the directory of its log.
import type { Ground } from "../../durable/liveness/ground.ts";
import { ensureDirectory, listIfThere } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { fileNameOf } from "../../format/name.ts";
import { recordBytesMax } from "../../format/record.ts";
import { Generations, readGenerations, type GenerationsState } from "../../part/generations.ts";
import { DirectoryDocuments } from "../projection/directory-documents.ts";
import type { Documents } from "../projection/documents.ts";
import type { DerivedData } from "./derived-data.ts";

export class DerivedFiles implements DerivedData {
  readonly #ground: Ground;
  readonly #directory: string;

  constructor(ground: Ground, directory: string) {
    this.#ground = ground;
    this.#directory = directory;
  }

  async listConsumers(): Promise<string[]> {
    return await this.#listWithChain("consumers", "epochs");
  }

  async listReadModels(): Promise<string[]> {
    return await this.#listWithChain("projections", "catalog/epochs");
  }

  async readGenerations(name: string): Promise<GenerationsState> {
    const { staging, ports } = this.#ground;
    return await readGenerations(staging, `${this.#directory}/${name}`, ports.host.bootId);
  }

  async openGenerations(name: string): Promise<Generations> {
    const { staging, ports } = this.#ground;
    return await Generations.open(staging, `${this.#directory}/${name}`, ports.host.bootId, { keepsOlder: true });
  }

  documentsOf(path: string): Documents {
    return new DirectoryDocuments(this.#ground.ports.disk, path);
  }

  async readSnapshot(model: string, hash: string): Promise<Uint8Array> {
    return await this.#ground.ports.disk.readFile(this.#snapshotOf(model, hash), recordBytesMax);
  }

  async keepSnapshot(model: string, hash: string, bytes: Uint8Array): Promise<void> {
    await ensureDirectory(this.#ground.ports.disk, this.#snapshotsOf(model));
    // Not synced: if a power cut removes it, the next read takes longer; a torn file fails its checksum.
    await replace(this.#ground.staging, this.#snapshotOf(model, hash), bytes, { sync: false });
  }

  /** Looks for an existing chain first: opening one would create it, also in a foreign directory. */
  async #listWithChain(kind: string, chain: string): Promise<string[]> {
    const { disk } = this.#ground.ports;
    const directory = `${this.#directory}/${kind}`;
    const names: string[] = [];
    for (const name of await listIfThere(disk, directory))
      if ((await disk.findStat(`${directory}/${name}/${chain}`))?.kind === "directory") names.push(name);
    return names;
  }

  #snapshotsOf(model: string): string {
    return `${this.#directory}/snapshots/${fileNameOf(model)}`;
  }

  #snapshotOf(model: string, hash: string): string {
    return `${this.#snapshotsOf(model)}/${hash}.json`;
  }
}
