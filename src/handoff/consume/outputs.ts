// Outputs of a handler beside its result: files, and tickets for other boxes. All of it is staged
// in one directory of the claim. The commit renames that directory, which makes all outputs visible
// in one step; without a commit they never appear.
import type { Body } from "../../common.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { encodeRecord } from "../../format/record.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { createUniqueFile, makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { writeBody, type BodyDigest } from "../../part/body.ts";
import type { Box } from "../box/box.ts";
import { committedKind, recordName, type Committed, type SentTicket } from "../ledger/ledger.ts";
import { checkFileName } from "../model/arguments.ts";
import { sentKey } from "../model/sent-key.ts";
import { formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import type { ClaimedTicket } from "./claim.ts";
import { claimTaken } from "./settle.ts";

type Output = Committed["outputs"][number];

export class StagedOutputs {
  readonly #box: Box;
  readonly #claim: ClaimedTicket;
  readonly #outputs = new Map<string, Output>();
  readonly #sent: SentTicket[] = [];
  #directory: Promise<string> | undefined;
  /** Why a ticket could not be staged, if so. Then the commit fails with this error. */
  #failure: { readonly error: unknown } | undefined;

  constructor(box: Box, claim: ClaimedTicket) {
    this.#box = box;
    this.#claim = claim;
  }

  /** True if nothing was staged. */
  get isEmpty(): boolean {
    return this.#directory === undefined;
  }

  get facts(): Pick<Committed, "outputs" | "sent"> {
    return { outputs: [...this.#outputs.values()], sent: [...this.#sent] };
  }

  async add(name: string, body: Body): Promise<void> {
    checkFileName(name);
    if (this.#outputs.has(name)) throw new TypeError(`There is already an output ${JSON.stringify(name)}.`);
    const { size, sha256 } = await this.#write("outputs", name, body);
    this.#outputs.set(name, { name, size, sha256 });
  }

  /**
   * Stages a ticket that is published in `box` after the commit. `options` are those of `publish`,
   * as JSON. A ticket without a key gets one here. It is stored in the ledger entry, so every
   * process that completes the commit uses the same key.
   */
  async send(box: string, bodies: readonly (readonly [name: string, body: Body])[], options: object): Promise<void> {
    // The index is read before the first `await`: another ticket may be staged meanwhile.
    const index = this.#sent.length;
    const { id, replays } = this.#claim.name;
    const key = sentKey({ boxId: this.#box.id, id, replays, index });
    this.#sent.push({ box, files: bodies.map(([name]) => name), options: { key, ...options } });
    try {
      for (const [name, body] of bodies) await this.#write(`sent-${index}`, name, body);
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  /**
   * Writes the ledger record beside the outputs, and returns the directory to be committed.
   * Everything in it is durable when this resolves.
   */
  async seal(committed: Committed): Promise<string> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const directory = await this.#open();
    const { disk } = this.#box;
    // The record is written again for each try: a failed commit may be retried with another result.
    const bytes = encodeRecord(committedKind, committed);
    await createUniqueFile(disk, `${directory}/${recordName}`, bytes, { sync: this.#box.isSynced });
    await this.#box.sync(
      ...(await disk.list(directory)).filter((name) => name !== recordName).map((name) => `${directory}/${name}`),
    );
    await this.#box.sync(directory);
    return directory;
  }

  /**
   * Removes what was staged and not committed. What cannot be removed now is removed when the
   * session is swept.
   */
  async discard(): Promise<void> {
    const directory = await this.#directory?.catch(() => undefined);
    if (directory !== undefined) await removeTree(this.#box.disk, directory).catch(() => undefined);
  }

  async #write(directory: string, name: string, body: Body): Promise<BodyDigest> {
    const { session } = this.#claim;
    try {
      const path = `${await this.#open()}/${directory}`;
      await makeUniqueDirectory(this.#box.disk, path);
      return await writeBody(this.#box.disk, `${path}/${name}`, body, { signal: session.signal });
    } catch (error) {
      // Other processes judged this one dead, and removed what it had staged.
      if (hasErrno(error, "ENOENT")) session.reportSwept(session.temp);
      if (session.isOver) throw claimTaken(this.#claim, error);
      throw error;
    }
  }

  async #open(): Promise<string> {
    this.#directory ??= this.#make();
    return await this.#directory;
  }

  async #make(): Promise<string> {
    const { session, name } = this.#claim;
    if (session.isOver) throw claimTaken(this.#claim, session.signal.reason);
    const ticket = formatTicketName(unrankedOf(name)).replace(/\.json$/, "");
    const directory = `${await this.#box.staging(session)}/${ticket}`;
    await makeUniqueDirectory(this.#box.disk, directory);
    return directory;
  }
}
