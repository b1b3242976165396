// What a handler makes beside its result: output files, and tickets for other boxes. All of it is staged in one
// directory of the claim, and becomes visible with the commit by one rename of that directory, or never.
import type { Body } from "../../common.ts";
import { encodeRecord } from "../../format/record.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { writeBody } from "../../part/body.ts";
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
    const directory = await this.#within("outputs");
    const { signal } = this.#claim.session;
    const { size, sha256 } = await writeBody(this.#box.disk, `${directory}/${name}`, body, { signal });
    this.#outputs.set(name, { name, size, sha256 });
  }

  /** A ticket that is published in `box` after the commit. `options` is what `publish` takes, as JSON. */
  async send(box: string, bodies: readonly (readonly [name: string, body: Body])[], options: unknown): Promise<void> {
    const directory = await this.#within(`sent-${this.#sent.length}`);
    for (const [name, body] of bodies) {
      const { signal } = this.#claim.session;
      await writeBody(this.#box.disk, `${directory}/${name}`, body, { signal });
    }
    this.#sent.push({ box, files: bodies.map(([name]) => name), options });
  }

  /** Puts the record beside them. Everything is durable when it resolves; gives the directory that is to be committed. */
  async seal(committed: Committed): Promise<string> {
    const directory = await this.#open();
    const { disk } = this.#box;
    await disk.createFile(`${directory}/${recordName}`, encodeRecord(committedKind, committed), {
      sync: this.#box.isSynced,
    });
    await this.#box.sync(
      ...(await disk.list(directory)).filter((name) => name !== recordName).map((name) => `${directory}/${name}`),
    );
    await this.#box.sync(directory);
    return directory;
  }

  async #within(name: string): Promise<string> {
    const directory = `${await this.#open()}/${name}`;
    await makeUniqueDirectory(this.#box.disk, directory);
    return directory;
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
