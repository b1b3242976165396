// Real files for programs that need a path. A large payload is stored in files. A small one is
// stored in its ticket and copied to files when a program asks for a path.
import { ensureDirectory, removeTree } from "../../durable/publish/directory.ts";
import { replace } from "../../durable/publish/publish.ts";
import { createUniqueFile, makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { inParallel } from "../../durable/wait/in-parallel.ts";
import { readWhole } from "../../part/read-chunks.ts";
import type { Box } from "../box/box.ts";
import type { ManifestFile } from "../model/manifest.ts";
import { formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import type { ClaimedTicket } from "./claim.ts";
import { readPayload } from "./payload-check.ts";

/** Maximum number of files written at once. */
const openMax = 16;

/** The files of one claim. */
export class PayloadFiles {
  readonly #box: Box;
  readonly #claim: ClaimedTicket;
  /** The directory of the copies, in the session's staging; undefined until a path is requested. */
  #directory: Promise<string> | undefined;
  readonly #written = new Map<string, Promise<string>>();

  constructor(box: Box, claim: ClaimedTicket) {
    this.#box = box;
    this.#claim = claim;
  }

  /** The path is valid until `remove`. */
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
   * Returns paths that stay valid while the ticket exists, even after this process ends. A small
   * payload is copied to where large ones are stored; several processes may write the same files
   * there.
   */
  async keep(): Promise<Record<string, string>> {
    const { session, ticket } = this.#claim;
    const { id, files } = ticket.manifest;
    const directory = this.#box.layout.payload(id);
    if (ticket.inline !== undefined) {
      await ensureDirectory(this.#box.disk, directory);
      const options = { sync: this.#box.isSynced, syncsName: false };
      await inParallel(files, openMax, async (file) => {
        await replace(session.staging, `${directory}/${file.name}`, await this.#read(file), options);
      });
      await this.#box.sync(directory);
    }
    return Object.fromEntries(files.map(({ name }) => [name, `${directory}/${name}`]));
  }

  /** Removes the copies. What cannot be removed now is removed when the session is swept. */
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
    return await readWhole(readPayload(this.#box, this.#claim.ticket, file));
  }
}
