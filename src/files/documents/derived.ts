// Derived: all data that workers derive from a tree for all processes, and the index that it
// belongs to.
import { ensureDirectory, parentOf, removeTree } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { randomName } from "../../format/id.ts";
import { Snapshots } from "../search/snapshots.ts";
import { findStamp } from "../tree/found-file.ts";
import { Stamps } from "../tree/stamps.ts";
import type { Tree } from "../tree/tree.ts";
import { TreeReader } from "../tree/tree-reader.ts";
import { Documents } from "./documents.ts";
import { decideIndex, findIndex, type IndexRecord } from "./index-record.ts";
import { DocumentsLayout } from "./layout.ts";
import { Outcomes } from "./outcomes.ts";

export class Derived {
  readonly tree: Tree;
  readonly stamps: Stamps;
  readonly reader: TreeReader;
  readonly documents: Documents;
  readonly outcomes: Outcomes;
  readonly snapshots: Snapshots;
  readonly #layout: DocumentsLayout;

  constructor(tree: Tree, layout: DocumentsLayout = new DocumentsLayout(tree.layout.documents)) {
    const { ports, staging } = tree.ground;
    this.tree = tree;
    this.stamps = new Stamps(tree.disk, ports.clock);
    this.reader = new TreeReader(tree, this.stamps);
    this.documents = new Documents(staging, layout);
    this.outcomes = new Outcomes(staging, layout);
    this.snapshots = new Snapshots(staging, tree.layout.index, ports.host.bootId);
    this.#layout = layout;
  }

  /** Returns the stamp of the file as it is in the tree now; undefined if there is none. */
  async findStamp(path: string): Promise<string | undefined> {
    return await findStamp(this.tree, this.stamps, path);
  }

  /** Returns the record of the current index. Starts a new index if there is none. */
  async decideIndex(): Promise<IndexRecord> {
    const known = await this.#findIndex();
    if (known !== undefined) return known;
    const { ground, changes } = this.tree;
    return await decideIndex(ground.staging, this.#layout, changes, async () => {
      for await (const _ of this.reader.list()) return false;
      return true;
    });
  }

  /**
   * Returns the change up to which the last snapshot of the index has all changes; 0 without a
   * snapshot.
   */
  async findSnapshotPosition(index?: IndexRecord): Promise<number> {
    const { id } = index ?? (await this.decideIndex());
    return (await this.snapshots.findRecord(id))?.record.position ?? 0;
  }

  /**
   * Removes an index that belongs to another change log: an older copy of the log was restored, or a
   * copy was made file by file during changes. The numbers in the index will be reused. `isDeep` also
   * lists all documents, some of which interrupted work may have left.
   */
  async dropIndexOfAnotherLog({ isDeep = false }: { readonly isDeep?: boolean } = {}): Promise<void> {
    const { ground, changes, root } = this.tree;
    const record = await this.#findIndex();
    if (record === undefined) return;
    const newest = Math.max(
      record.base - 1,
      await this.findSnapshotPosition(record),
      await this.outcomes.last(),
      isDeep ? await this.documents.last() : 0,
    );
    if (await changes.has(newest)) return;
    // Another process may have started a new index meanwhile.
    if ((await this.#findIndex())?.id !== record.id) return;
    const { disk, random } = ground.staging;
    const { directory } = this.#layout;
    const aside = `${parentOf(directory)}/aside`;
    const taken = `${aside}/documents.${randomName(random.bytes(16))}`;
    await ensureDirectory(disk, aside);
    // Renamed in one step, so that files of the next index are not removed with this one.
    if (await moveOnce(disk, directory, taken)) await removeTree(disk, taken);
    ground.ports.host.warn(
      `${root}: the index is newer than the change log, so it is rebuilt. Was an older copy restored?`,
    );
  }

  async #findIndex(): Promise<IndexRecord | undefined> {
    const { staging, ports } = this.tree.ground;
    return await findIndex(staging, this.#layout, (error) =>
      ports.host.warn(`The index is moved aside and rebuilt. ${String(error)}`),
    );
  }
}
