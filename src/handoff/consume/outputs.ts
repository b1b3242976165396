// What a handler makes beside its result: output files, and tickets for other boxes. All of it is staged in one
// directory of the claim, and becomes visible with the commit by one rename of that directory, or never.
import type { Body } from "../../common.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { encodeRecord } from "../../format/record.ts";
import { removeTree } from "../../durable/publish/directory.ts";
import { createUniqueFile, makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { writeBody, type BodyDigest } from "../../part/body.ts";
import type { Box } from "../box/box.ts";
import { committedKind, recordName, type Committed, type SentTicket } from "../ledger/ledger.ts";
import { checkFileName } from "../model/arguments.ts";
import { formatTicketName, unrankedOf } from "../model/ticket-name.ts";
import type { Claimed } from "./claim.ts";
import { claimLost } from "./settle.ts";

type Output = Committed["outputs"][number];

export class StagedOutputs {
  readonly #box: Box;
  readonly #claim: Claimed;
  readonly #outputs = new Map<string, Output>();
  readonly #sent: SentTicket[] = [];
  #directory: Promise<string> | undefined;
  /** Of a ticket that could not be staged: what it belongs to is not committed without it. */
  #failure: { readonly error: unknown } | undefined;

  constructor(box: Box, claim: Claimed) {
    this.#box = box;
    this.#claim = claim;
  }

  /** Undefined when nothing was staged. */
  get isEmpty(): boolean {
    return this.#directory === undefined;
  }

  get facts(): Pick<Committed, "outputs" | "sent"> {
    return { outputs: [...this.#outputs.values()], sent: [...this.#sent] };
  }

  async add(name: string, body: Body): Promise<void> {
    checkFileName(name);
    if (this.#outputs.has(name)) throw new TypeError(`There is an output ${JSON.stringify(name)} already.`);
    const { size, sha256 } = await this.#write("outputs", name, body);
    this.#outputs.set(name, { name, size, sha256 });
  }

  /** A ticket that is published in `box` after the commit. `options` is what `publish` takes, as JSON. */
  async send(box: string, bodies: readonly (readonly [name: string, body: Body])[], options: unknown): Promise<void> {
    // The number is taken at once: another one may be staged meanwhile.
    const sent: SentTicket = { box, files: bodies.map(([name]) => name), options };
    const index = this.#sent.push(sent) - 1;
    try {
      for (const [name, body] of bodies) await this.#write(`sent-${index}`, name, body);
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
  }

  /** Puts the record beside them. Everything is durable when it resolves; gives the directory that is to be committed. */
  async seal(committed: Committed): Promise<string> {
    if (this.#failure !== undefined) throw this.#failure.error;
    const directory = await this.#open();
    const { disk } = this.#box;
    // Anew each time: a commit that failed may be tried again with another result.
    const bytes = encodeRecord(committedKind, committed);
    await createUniqueFile(disk, `${directory}/${recordName}`, bytes, { sync: this.#box.isSynced });
    await this.#box.sync(
      ...(await disk.list(directory)).filter((name) => name !== recordName).map((name) => `${directory}/${name}`),
    );
    await this.#box.sync(directory);
    return directory;
  }

  /** Removes what was staged and not committed. If that fails, it goes with the session. */
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
      // Other processes took this one for dead, and what it had staged with it.
      if (hasErrno(error, "ENOENT")) session.reportSwept(session.temp);
      if (session.isOver) throw claimLost(this.#claim, error);
      throw error;
    }
  }

  async #open(): Promise<string> {
    this.#directory ??= this.#make();
    return await this.#directory;
  }

  async #make(): Promise<string> {
    const { session, name } = this.#claim;
    if (session.isOver) throw claimLost(this.#claim, session.signal.reason);
    const ticket = formatTicketName(unrankedOf(name)).replace(/\.json$/, "");
    const directory = `${await this.#box.staging(session)}/${ticket}`;
    await makeUniqueDirectory(this.#box.disk, directory);
    return directory;
  }
}
