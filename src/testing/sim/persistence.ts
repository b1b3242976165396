// What a power cut may leave of the simulated disk: the durable image, what is pending on top of it, and every state that a profile allows.
import { Tree, type DirectoryNode, type FileNode, type TreeNode } from "../../ports/memory/tree.ts";

/**
 * - `ext4-ordered`: names become durable in the order in which they were changed, and any sync makes all earlier name changes durable.
 * - `weak`: each name becomes durable by itself, in any order; a rename may be half there; a synced file may still lack its name.
 * - `share`: names are durable at once (the server answers after its own sync); only unsynced content can be lost.
 * In all of them unsynced content may be there, be missing, be torn, or read as zeros.
 */
export type Profile = "ext4-ordered" | "weak" | "share";

export interface EntryChange {
  readonly directory: DirectoryNode;
  readonly name: string;
  /** Undefined: the name was removed. */
  readonly node: TreeNode | undefined;
}
interface Write {
  readonly offset: number;
  readonly bytes: Uint8Array;
}

export class Persistence {
  readonly #profile: Profile;
  readonly #root: DirectoryNode;
  readonly #entries = new Map<DirectoryNode, Map<string, TreeNode>>();
  readonly #bytes = new Map<FileNode, Uint8Array>();
  /** In the order in which they happened; each group is one operation. */
  #pendingChanges: (readonly EntryChange[])[] = [];
  readonly #pendingWrites = new Map<FileNode, Write[]>();

  constructor(profile: Profile, root: DirectoryNode) {
    this.#profile = profile;
    this.#root = root;
  }

  changed(...changes: readonly EntryChange[]): void {
    if (this.#profile === "share") for (const change of changes) this.#keep(change);
    else this.#pendingChanges.push(changes);
  }

  wrote(file: FileNode, offset: number, bytes: Uint8Array): void {
    const writes = this.#pendingWrites.get(file) ?? [];
    writes.push({ offset, bytes });
    this.#pendingWrites.set(file, writes);
  }

  syncFile(file: FileNode): void {
    this.#bytes.set(file, file.bytes);
    this.#pendingWrites.delete(file);
    if (this.#profile === "ext4-ordered") this.#keepAllChanges();
  }

  /** The kernel marks the pages clean although they never reached the disk: a second sync has nothing to do and says "fine". */
  forgetWrites(file: FileNode): void {
    this.#pendingWrites.delete(file);
  }

  syncDirectory(directory: DirectoryNode): void {
    if (this.#profile === "ext4-ordered") return this.#keepAllChanges();
    for (const group of this.#pendingChanges)
      for (const change of group) if (change.directory === directory) this.#keep(change);
    this.#pendingChanges = this.#pendingChanges
      .map((group) => group.filter((change) => change.directory !== directory))
      .filter((group) => group.length > 0);
  }

  syncEverything(): void {
    this.#keepAllChanges();
    for (const file of [...this.#pendingWrites.keys()]) this.syncFile(file);
  }

  /** How many states a power cut may leave now. */
  imageCount(): number {
    return this.#choices().reduce((product, choice) => product * choice.count, 1);
  }

  /** State number `index` of those, as a tree of its own in which everything is durable. */
  image(index: number, now: () => number): Tree {
    const entries = new Map([...this.#entries].map(([directory, names]) => [directory, new Map(names)]));
    const bytes = new Map(this.#bytes);
    let rest = index;
    for (const choice of this.#choices()) {
      choice.apply(rest % choice.count, entries, bytes);
      rest = Math.floor(rest / choice.count);
    }
    return buildTree(this.#root, entries, bytes, now);
  }

  /** For the fingerprint of a state: what is pending, in terms of the given names for nodes. */
  describe(nameOf: (node: TreeNode) => string): string {
    const changes = this.#pendingChanges.map((group) =>
      group
        .map(({ directory, name, node }) => `${nameOf(directory)}/${name}=${node === undefined ? "" : nameOf(node)}`)
        .join("+"),
    );
    const writes = [...this.#pendingWrites].map(([file, list]) => `${nameOf(file)}*${list.length}`).sort();
    const durable = [...this.#bytes]
      .map(([file, bytes]) => (bytes === file.bytes ? "" : `${nameOf(file)}:${bytes.length}`))
      .sort();
    return `${changes.join(",")}|${writes.join(",")}|${durable.join(",")}`;
  }

  #keepAllChanges(): void {
    for (const group of this.#pendingChanges) for (const change of group) this.#keep(change);
    this.#pendingChanges = [];
  }

  #keep(change: EntryChange): void {
    applyChange(this.#entries, change);
  }

  #choices(): Choice[] {
    const files = [...this.#pendingWrites].map(([file, writes]) => contentChoice(file, writes));
    if (this.#profile === "ext4-ordered") return [prefixChoice(this.#pendingChanges), ...files];
    const byName = new Map<DirectoryNode, Map<string, EntryChange[][]>>();
    for (const change of this.#pendingChanges.flat()) {
      const names = byName.get(change.directory) ?? new Map<string, EntryChange[][]>();
      names.set(change.name, [...(names.get(change.name) ?? []), [change]]);
      byName.set(change.directory, names);
    }
    return [...[...byName.values()].flatMap((names) => [...names.values()].map(prefixChoice)), ...files];
  }
}

type Entries = Map<DirectoryNode, Map<string, TreeNode>>;
type Contents = Map<FileNode, Uint8Array>;

/** One independent question that a power cut answers by chance. */
interface Choice {
  readonly count: number;
  readonly apply: (index: number, entries: Entries, contents: Contents) => void;
}

/** Of changes that become durable in order, the first few did. */
function prefixChoice(groups: readonly (readonly EntryChange[])[]): Choice {
  return {
    count: groups.length + 1,
    apply: (kept, entries) => {
      for (const group of groups.slice(0, kept)) for (const change of group) applyChange(entries, change);
    },
  };
}

/** The first few writes are there, the next may be torn, or all of it reads as zeros. */
function contentChoice(file: FileNode, writes: readonly Write[]): Choice {
  const zeros = 2 * writes.length + 1;
  return {
    count: zeros + 1,
    apply: (index, _entries, contents) => {
      let bytes = contents.get(file) ?? new Uint8Array();
      if (index === zeros)
        for (const { offset, bytes: part } of writes) bytes = written(bytes, offset, new Uint8Array(part.length));
      else {
        const whole = Math.floor(index / 2);
        for (const { offset, bytes: part } of writes.slice(0, whole)) bytes = written(bytes, offset, part);
        const torn = writes[whole];
        if (index % 2 === 1 && torn !== undefined)
          bytes = written(bytes, torn.offset, torn.bytes.slice(0, Math.ceil(torn.bytes.length / 2)));
      }
      contents.set(file, bytes);
    },
  };
}

function written(bytes: Uint8Array, offset: number, part: Uint8Array): Uint8Array {
  const result = new Uint8Array(Math.max(bytes.length, offset + part.length));
  result.set(bytes);
  result.set(part, offset);
  return result;
}

function applyChange(entries: Entries, { directory, name, node }: EntryChange): void {
  const names = entries.get(directory) ?? new Map<string, TreeNode>();
  if (node === undefined) names.delete(name);
  else names.set(name, node);
  entries.set(directory, names);
}

function buildTree(root: DirectoryNode, entries: Entries, contents: Contents, now: () => number): Tree {
  const tree = new Tree(now);
  const files = new Map<FileNode, FileNode>();
  const fill = (from: DirectoryNode, to: DirectoryNode): void => {
    for (const [name, node] of entries.get(from) ?? []) {
      if (node.kind === "directory") {
        const made = tree.newDirectory();
        to.entries.set(name, made);
        fill(node, made);
      } else {
        const made = files.get(node) ?? tree.newFile(contents.get(node) ?? new Uint8Array());
        files.set(node, made);
        made.links++;
        to.entries.set(name, made);
      }
    }
  };
  fill(root, tree.root);
  return tree;
}
