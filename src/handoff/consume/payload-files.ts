// Real files for programs that need a path. A large payload has them; the contents of a small one are in its
// ticket, and are put into files when a program asks for them.
import { ensureDirectory, removeTree } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { createUniqueFile, makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import type { Box } from "../box/box.ts";
import type { ManifestFile } from "../model/manifest.ts";
import { formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import type { Claimed } from "./claim.ts";
import { readPayload } from "./payload-check.ts";

/** The files of one claim. */
export class PayloadFiles {
  readonly #box: Box;
  readonly #claim: Claimed;
  /** In the staging of the session; undefined as long as no path was asked for. */
  #directory: Promise<string> | undefined;
  readonly #written = new Map<string, Promise<string>>();

  constructor(box: Box, claim: Claimed) {
    this.#box = box;
    this.#claim = claim;
  }

  /** Until `remove`. */
  async path(file: ManifestFile): Promise<string> {
    const { ticket } = this.#claim;
    if (ticket.inline === undefined) return `${this.#box.layout.payload(ticket.manifest.id)}/${file.name}`;
    let writing = this.#written.get(file.name);
    if (writing === undefined) {
      writing = this.#write(file);
      this.#written.set(file.name, writing);
      writing.catch(() => this.#written.delete(file.name));
    }
    return await writing;
  }

  /**
   * Where all files are for as long as the ticket is there, also after this process: beside those of large
   * payloads. Any number of processes may write the same there.
   */
  async keep(): Promise<Record<string, string>> {
    const { session, ticket } = this.#claim;
    const { id, files } = ticket.manifest;
    const directory = this.#box.layout.payload(id);
    if (ticket.inline !== undefined) {
      await ensureDirectory(this.#box.disk, directory);
      for (const file of files)
        await replace(session.staging, `${directory}/${file.name}`, await this.#read(file), {
          sync: this.#box.isSynced,
        });
    }
    return Object.fromEntries(files.map(({ name }) => [name, `${directory}/${name}`]));
  }

  /** What is left behind goes when the session is swept. */
  async remove(): Promise<void> {
    const directory = await this.#directory?.catch(() => undefined);
    if (directory !== undefined) await removeTree(this.#box.disk, directory).catch(() => undefined);
  }

  async #write(file: ManifestFile): Promise<string> {
    this.#directory ??= this.#make();
    const path = `${await this.#directory}/${file.name}`;
    await createUniqueFile(this.#box.disk, path, await this.#read(file), { sync: false });
    return path;
  }

  async #make(): Promise<string> {
    const { session, name } = this.#claim;
    const ticket = formatTicketName(unrankedOf(name)).replace(/\.json$/, "");
    const directory = `${await this.#box.staging(session)}/${ticket}-files`;
    await makeUniqueDirectory(this.#box.disk, directory);
    return directory;
  }

  async #read(file: ManifestFile): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of readPayload(this.#box, this.#claim.ticket, file)) pieces.push(piece);
    return Buffer.concat(pieces);
  }
}
