// The outcomes of all processed changes. The first outcome of a change counts.
import { ensureDirectory, listIfThere, unlinkIfThere } from "../../durable/publish/directory.ts";
import { putIfAbsent } from "../../durable/publish/publish.ts";
import { findRecord, isUnreadable } from "../../durable/publish/record-file.ts";
import type { Staging } from "../../durable/publish/staging.ts";
import { randomName } from "../../format/id.ts";
import { findSlotNumber } from "../../format/name.ts";
import { encodeRecord } from "../../format/record.ts";
import { hasErrno } from "../../ports/disk-error.ts";
import { documentsListedMax, outcomeKind, type Outcome } from "./outcome.ts";
import type { DocumentsLayout } from "./layout.ts";

export interface NewOutcome extends Pick<Outcome, "change" | "paths" | "failed"> {
  /** The paths of the documents; "many" if they are not known. */
  readonly documents: readonly string[] | "many";
}

export class Outcomes {
  readonly #staging: Staging;
  readonly #layout: DocumentsLayout;

  constructor(staging: Staging, layout: DocumentsLayout) {
    this.#staging = staging;
    this.#layout = layout;
  }

  /** Publishes an outcome; durable when it resolves. Call it after the documents are durable. */
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

  /**
   * Returns the outcome of a change. An unreadable one does not name its paths; its documents are
   * found by their names.
   */
  async find(change: number): Promise<Outcome | undefined> {
    try {
      return await findRecord(this.#staging.disk, outcomeKind, this.#layout.outcome(change));
    } catch (error) {
      if (!isUnreadable(error)) throw error;
      return { change, paths: [], documents: [], hasMore: true };
    }
  }

  /**
   * Returns those of these changes that have an outcome. On a share the answer is as fresh as a
   * listing.
   */
  async among(changes: readonly number[]): Promise<number[]> {
    const wanted = new Set(changes);
    const found: number[] = [];
    for (const block of this.#layout.outcomeBlocks(changes))
      for (const name of await listIfThere(this.#staging.disk, block)) {
        const change = findSlotNumber(name);
        if (change !== undefined && wanted.has(change)) found.push(change);
      }
    return found.sort((a, b) => a - b);
  }

  /** Returns the highest change that has an outcome; 0 if there is none. */
  async last(): Promise<number> {
    const blocks = (await listIfThere(this.#staging.disk, this.#layout.outcomes)).filter(
      (name) => findSlotNumber(name) !== undefined,
    );
    for (const block of blocks.sort().reverse()) {
      const names = await listIfThere(this.#staging.disk, `${this.#layout.outcomes}/${block}`);
      const last = names.reduce((highest, name) => Math.max(highest, findSlotNumber(name) ?? 0), 0);
      if (last > 0) return last;
    }
    return 0;
  }

  /** Removes the outcomes up to this change, which no process needs any more. */
  async removeUpTo(change: number): Promise<void> {
    for (const block of await listIfThere(this.#staging.disk, this.#layout.outcomes)) {
      const directory = `${this.#layout.outcomes}/${block}`;
      const names = (
        findSlotNumber(block) === undefined ? [] : await listIfThere(this.#staging.disk, directory)
      ).sort();
      for (const name of names)
        if ((findSlotNumber(name) ?? Infinity) <= change)
          await unlinkIfThere(this.#staging.disk, `${directory}/${name}`);
    }
  }
}
