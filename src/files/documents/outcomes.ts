// The outcomes of all changes that were worked on. The first one of a change counts.
import { ensureDirectory, unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber } from "../../format/name.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { documentsListedMax, outcomeKind, type Outcome } from "./outcome.ts";
import type { DocumentsLayout } from "./layout.ts";

export interface NewOutcome extends Pick<Outcome, "change" | "paths" | "failed"> {
  /** Their paths; "many" when it is not known which there are. */
  readonly documents: readonly string[] | "many";
}

export class Outcomes {
  readonly #staging: Staging;
  readonly #layout: DocumentsLayout;

  constructor(staging: Staging, layout: DocumentsLayout) {
    this.#staging = staging;
    this.#layout = layout;
  }

  /** To be called when the documents are durable. Durable when it resolves. */
  async publish({ documents, ...rest }: NewOutcome): Promise<void> {
    const { disk, random } = this.#staging;
    const hasMore = documents === "many" || documents.length > documentsListedMax;
    const outcome = { ...rest, documents: hasMore ? [] : documents, hasMore };
    const bytes = encodeRecord(outcomeKind, { id: randomName(random.bytes(16)), ...outcome });
    const put = (): Promise<boolean> => putIfAbsent(this.#staging, this.#layout.outcome(rest.change), bytes);
    await put().catch(async (error: unknown) => {
      if (!hasErrno(error, "ENOENT")) throw error;
      await ensureDirectory(disk, this.#layout.outcomeBlock(rest.change));
      return await put();
    });
  }

  async find(change: number): Promise<Outcome | undefined> {
    return await findRecord(this.#staging.disk, outcomeKind, this.#layout.outcome(change));
  }

  /** Which of these changes have one. On a share as new as a listing is there. */
  async among(changes: readonly number[]): Promise<number[]> {
    const wanted = new Set(changes);
    const found: number[] = [];
    for (const block of this.#layout.outcomeBlocks(changes))
      for (const name of await this.#names(block)) {
        const change = findSlotNumber(name);
        if (change !== undefined && wanted.has(change)) found.push(change);
      }
    return found.sort((a, b) => a - b);
  }

  /** Removes those up to this change, which no process needs any more. */
  async removeUpTo(change: number): Promise<void> {
    for (const block of await this.#names(this.#layout.outcomes)) {
      const directory = `${this.#layout.outcomes}/${block}`;
      const names = (findSlotNumber(block) === undefined ? [] : await this.#names(directory)).sort();
      for (const name of names)
        if ((findSlotNumber(name) ?? Infinity) <= change)
          await unlinkIfThere(this.#staging.disk, `${directory}/${name}`);
    }
  }

  async #names(directory: string): Promise<string[]> {
    try {
      return await this.#staging.disk.list(directory);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return [];
      throw error;
    }
  }
}
