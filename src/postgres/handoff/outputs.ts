// The outputs of a handler: files, and tickets for other boxes of this database. Files become rows
// at once. The commit of the result makes all of them visible in one transaction.
import type { Body } from "../../common.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import type { Outputs } from "../../handoff/deliver/settler.ts";
import { checkFileName, checkPublication, type Files, type PublishOptions } from "../../handoff/model/arguments.ts";
import type { SendTarget } from "../../handoff/model/delivery.ts";
import type { OutputFile } from "../../handoff/model/handoff.ts";
import { sentKey, type Sender } from "../../handoff/model/sent-key.ts";
import { parseLocation } from "../connection/location.ts";
import { StagedPieces } from "./payload-rows.ts";
import { boxLocation, type PgBox } from "./pg-box.ts";
import { prepareTicket, type NewTicket } from "./publisher.ts";

/** A ticket for the box `p`, published with the commit. */
export interface SentTicket {
  readonly p: number;
  readonly path: string;
  readonly ticket: NewTicket;
}

export class StagedOutputs implements Outputs {
  readonly #box: PgBox;
  readonly #sender: Omit<Sender, "index">;
  readonly #lost: (cause: unknown) => Error;
  readonly #pieces: StagedPieces;
  readonly #files = new Map<string, OutputFile | undefined>();
  readonly #sent: { readonly pieces: StagedPieces; readonly preparing: Promise<SentTicket> }[] = [];
  #isCommitted = false;

  /** `lost` makes the error for a lost claim. */
  constructor(box: PgBox, sender: Omit<Sender, "index">, lost: (cause: unknown) => Error) {
    this.#box = box;
    this.#sender = sender;
    this.#lost = lost;
    this.#pieces = new StagedPieces(box, box.newId());
  }

  /** The owner of the files; undefined if there are none. */
  get owner(): string | undefined {
    return this.#files.size === 0 ? undefined : this.#pieces.owner;
  }

  get files(): readonly OutputFile[] {
    return [...this.#files.values()].filter((file) => file !== undefined);
  }

  async add(name: string, body: Body): Promise<void> {
    checkFileName(name);
    if (this.#files.has(name)) throw new TypeError(`There is already an output ${JSON.stringify(name)}.`);
    this.#files.set(name, undefined);
    try {
      this.#files.set(name, await this.#unlessLost(this.#pieces.write(name, body)));
    } catch (error) {
      this.#files.delete(name);
      throw error;
    }
  }

  async send(target: SendTarget, files: Files, options: PublishOptions): Promise<void> {
    const publication = checkPublication(files, options);
    const other = await this.#locate(target.directory);
    // A ticket without a key gets one. A replayed sender sends the ticket again with another key.
    const key = options.key ?? sentKey({ ...this.#sender, index: this.#sent.length });
    const id = this.#box.newId();
    const pieces = new StagedPieces(this.#box, id, other.p);
    const preparing = this.#unlessLost(prepareTicket(this.#box, id, { ...publication, key }, pieces)).then(
      (ticket) => ({ ...other, ticket }),
    );
    this.#sent.push({ pieces, preparing });
    await preparing;
  }

  /**
   * Returns the tickets to publish. Rejects if one of them could not be staged: the commit needs
   * all of them.
   */
  async sent(): Promise<SentTicket[]> {
    return await Promise.all(this.#sent.map(({ preparing }) => preparing));
  }

  /** Call it after the result was committed. */
  committed(): void {
    this.#isCommitted = true;
  }

  /** Removes everything that was staged and not committed. */
  async discard(): Promise<void> {
    if (this.#isCommitted) return;
    for (const { pieces, preparing } of this.#sent) {
      await preparing.catch(() => undefined);
      await pieces.discard();
    }
    await this.#pieces.discard();
  }

  async #unlessLost<T>(staging: Promise<T>): Promise<T> {
    try {
      return await staging;
    } catch (error) {
      throw isHoldfastError(error, "LOCK_LOST") ? this.#lost(error) : error;
    }
  }

  /** Throws NOT_A_STORE for a missing box, and UNSUPPORTED for one that is not in this database. */
  async #locate(directory: string): Promise<{ readonly p: number; readonly path: string }> {
    const { database, ground } = this.#box;
    if (!/^postgres(ql)?:/i.test(directory)) throw elsewhere(this.#box.directory, directory);
    const { store, part = "", shown } = parseLocation(directory);
    const name = part.replace(/^handoff\//, "");
    if (boxLocation(shown, store, name) !== boxLocation(ground.location, store, name))
      throw elsewhere(this.#box.directory, shown);
    const [row] = await database.query<{ p: number }>(
      "select p from hf_part where store = $1 and room = 'handoff' and name = $2",
      [store, name],
    );
    if (row !== undefined) return { p: row.p, path: `/${store}/handoff/${name}` };
    const message = `There is no box ${shown}, so nothing can be sent to it. Open the box once to create it.`;
    throw holdfastError("NOT_A_STORE", message, { path: directory });
  }
}

function elsewhere(location: string, target: string): Error {
  const message = `${target} is not in the database of this box: nothing can be sent there in one transaction. Publish it in the handler, with a key.`;
  return holdfastError("UNSUPPORTED", message, { what: "send to another database or a folder", location });
}
