// The states that a power cut may leave of the simulated disk: the durable image, the pending changes on top of it,
// and every combination that a profile allows.
import { Tree, type DirectoryNode, type FileNode, type TreeNode } from "../../ports/memory/tree.ts";
import { contentAfter, fatesOf, type Write } from "./torn-writes.ts";

/**
 * The disks that a power cut may leave.
 *
 * - `ext4-ordered`: names become durable in the order of their changes, and any sync makes all
 *   earlier name changes durable.
 * - `journal`: each change of names is durable as a whole or not at all, and after earlier changes of
 *   the same names; otherwise in any order. A sync of a directory makes the changes in it durable,
 *   and a rename out of it with both its names.
 * - `weak`: each name becomes durable on its own, in any order; a rename may be half done; a synced
 *   file may still lack its name.
 * - `share`: names are durable at once, because the server answers after its own sync; only unsynced
 *   content can be lost.
 *
 * In all profiles, each unsynced write may be complete, missing, torn or read as zeros, independently
 * of earlier writes, except a write of the bytes that are already on the disk there.
 */
export type CrashProfile = "ext4-ordered" | "journal" | "weak" | "share";
/** @deprecated Use `CrashProfile`. */
export type Profile = CrashProfile;

export interface EntryChange {
  readonly directory: DirectoryNode;
  readonly name: string;
  /** Undefined if the name was removed. */
  readonly node: TreeNode | undefined;
}
/**
 * Writes to one file that share their fate. "pending": may still be synced. "lost": never will be. "synced": durable
 * on top of lost ones.
 */
interface Layer {
  readonly writes: Write[];
  fate: "pending" | "lost" | "synced";
}

export class Persistence {
  readonly #profile: CrashProfile;
  readonly #root: DirectoryNode;
  readonly #entries = new Map<DirectoryNode, Map<string, TreeNode>>();
  readonly #bytes = new Map<FileNode, Uint8Array>();
  /** In the order in which they happened. Each group is one operation. */
  #pendingChanges: (readonly EntryChange[])[] = [];
  /** Writes that are not in `#bytes`, oldest first. Only the last layer can be pending. */
  readonly #layers = new Map<FileNode, Layer[]>();
  /**
   * The independent choices of a power cut now. Forgotten at every change; kept because one state has hundreds of
   * images.
   */
  #choices: readonly Choice[] | undefined;

  constructor(profile: CrashProfile, root: DirectoryNode) {
    this.#profile = profile;
    this.#root = root;
  }

  /** Makes everything in this directory durable as it is. */
  adopt(directory: DirectoryNode): void {
    this.#choices = undefined;
    this.#entries.set(directory, new Map(directory.entries));
    for (const node of directory.entries.values())
      if (node.kind === "directory") this.adopt(node);
      else this.#bytes.set(node, node.bytes);
  }

  changed(...changes: readonly EntryChange[]): void {
    this.#choices = undefined;
    if (this.#profile === "share") for (const change of changes) this.#keep(change);
    else this.#pendingChanges.push(changes);
  }

  wrote(file: FileNode, offset: number, bytes: Uint8Array): void {
    this.#choices = undefined;
    const layers = this.#layers.get(file) ?? [];
    const last = layers.at(-1);
    if (last?.fate === "pending") last.writes.push({ offset, bytes });
    else layers.push({ fate: "pending", writes: [{ offset, bytes }] });
    this.#layers.set(file, layers);
  }

  /** Empties a file durably. Happens only on a file system whose exclusive create replaces files. */
  emptied(file: FileNode): void {
    this.#settleFile(file);
  }

  syncFile(file: FileNode): void {
    this.#choices = undefined;
    const layers = this.#layers.get(file) ?? [];
    for (const layer of layers) if (layer.fate === "pending") layer.fate = "synced";
    if (!layers.some(({ fate }) => fate === "lost")) this.#settleFile(file);
    if (this.#profile === "ext4-ordered") this.#keepAllChanges();
  }

  /**
   * The kernel marks the pages clean although not all of them reached the disk: a second sync does nothing and
   * reports success.
   */
  forgetWrites(file: FileNode): void {
    this.#choices = undefined;
    for (const layer of this.#layers.get(file) ?? []) if (layer.fate === "pending") layer.fate = "lost";
  }

  syncDirectory(directory: DirectoryNode): void {
    this.#choices = undefined;
    if (this.#profile === "ext4-ordered") return this.#keepAllChanges();
    if (this.#profile === "journal") return this.#keepChangesIn(directory);
    for (const group of this.#pendingChanges)
      for (const change of group) if (change.directory === directory) this.#keep(change);
    this.#pendingChanges = this.#pendingChanges
      .map((group) => group.filter((change) => change.directory !== directory))
      .filter((group) => group.length > 0);
  }

  syncEverything(): void {
    this.#keepAllChanges();
    for (const file of [...this.#layers.keys()]) this.#settleFile(file);
  }

  /** Returns how many states a power cut may leave now. */
  imageCount(): number {
    return this.#choicesNow().reduce((product, choice) => product * choice.count, 1);
  }

  /** Returns one of these states as a separate tree in which everything is durable. */
  image(index: number, now: () => number): Tree {
    const entries = new Map([...this.#entries].map(([directory, names]) => [directory, new Map(names)]));
    const bytes = new Map(this.#bytes);
    let rest = index;
    for (const choice of this.#choicesNow()) {
      choice.apply(rest % choice.count, entries, bytes);
      rest = Math.floor(rest / choice.count);
    }
    return buildTree(this.#root, entries, bytes, now);
  }

  /** Describes the pending and the durable state for a fingerprint, with the given names for nodes and contents. */
  describe(nameOf: (node: TreeNode) => string, hashOf: (bytes: Uint8Array) => string): string {
    const nameOrNone = (node: TreeNode | undefined): string => (node === undefined ? "" : nameOf(node));
    const changes = this.#pendingChanges.map((group) =>
      group
        .map(({ directory, name, node }) => {
          const below = this.#entries.get(directory)?.get(name);
          return `${nameOf(directory)}/${name}=${nameOrNone(node)}<${nameOrNone(below)}`;
        })
        .join("+"),
    );
    const contents = [...this.#layers].map(([file, layers]) => {
      const writes = layers.map(
        ({ fate, writes }) => `${fate}${writes.map(({ offset, bytes }) => `${offset}:${hashOf(bytes)}`).join("+")}`,
      );
      return `${nameOf(file)}<${hashOf(this.#bytes.get(file) ?? nothing)}<${writes.join("<")}`;
    });
    return `${changes.join(",")}|${contents.sort().join(",")}`;
  }

  #settleFile(file: FileNode): void {
    this.#choices = undefined;
    this.#bytes.set(file, file.bytes);
    this.#layers.delete(file);
  }

  #keepAllChanges(): void {
    this.#choices = undefined;
    for (const group of this.#pendingChanges) for (const change of group) this.#keep(change);
    this.#pendingChanges = [];
  }

  /** Makes the changes in a directory durable, with all earlier changes of the same names. */
  #keepChangesIn(directory: DirectoryNode): void {
    const kept = new Set<readonly EntryChange[]>();
    for (const chain of chainsOf(this.#pendingChanges)) {
      const last = chain.findLastIndex((group) => group.some((change) => change.directory === directory));
      for (const group of chain.slice(0, last + 1)) kept.add(group);
    }
    for (const group of this.#pendingChanges) if (kept.has(group)) for (const change of group) this.#keep(change);
    this.#pendingChanges = this.#pendingChanges.filter((group) => !kept.has(group));
  }

  #keep(change: EntryChange): void {
    applyChange(this.#entries, change);
  }

  #choicesNow(): readonly Choice[] {
    return (this.#choices ??= this.#newChoices());
  }

  #newChoices(): Choice[] {
    const files = [...this.#layers].map(([file, layers]) =>
      contentChoice(file, this.#bytes.get(file) ?? nothing, layers),
    );
    if (this.#profile === "ext4-ordered") return [prefixChoice(this.#pendingChanges), ...files];
    if (this.#profile === "journal") return [...chainsOf(this.#pendingChanges).map(prefixChoice), ...files];
    const byName = new Map<DirectoryNode, Map<string, EntryChange[]>>();
    for (const change of this.#pendingChanges.flat()) {
      const names = byName.get(change.directory) ?? new Map<string, EntryChange[]>();
      names.set(change.name, [...(names.get(change.name) ?? []), change]);
      byName.set(change.directory, names);
    }
    const names = [...byName].flatMap(([directory, changes]) =>
      [...changes].map(([name, list]) => nameChoice(list, this.#entries.get(directory)?.get(name))),
    );
    return [...names, ...files];
  }
}

const nothing = new Uint8Array();

/** Groups changes that share a name, directly or through others. Each group becomes durable in order. */
function chainsOf(groups: readonly (readonly EntryChange[])[]): (readonly EntryChange[])[][] {
  let chains: (readonly EntryChange[])[][] = [];
  for (const group of groups) {
    const isLinked = (chain: (readonly EntryChange[])[]): boolean =>
      chain
        .flat()
        .some(({ directory, name }) => group.some((other) => other.directory === directory && other.name === name));
    const linked = chains.filter(isLinked).flat();
    chains = [...chains.filter((chain) => !isLinked(chain)), [...linked, group]];
  }
  return chains;
}

type Entries = Map<DirectoryNode, Map<string, TreeNode>>;
type Contents = Map<FileNode, Uint8Array>;

/** One independent random outcome of a power cut. */
interface Choice {
  readonly count: number;
  readonly apply: (index: number, entries: Entries, contents: Contents) => unknown;
}

/** Of changes that become durable in order, a power cut keeps the first few. */
function prefixChoice(groups: readonly (readonly EntryChange[])[]): Choice {
  return {
    count: groups.length + 1,
    apply: (kept, entries) => {
      for (const group of groups.slice(0, kept)) for (const change of group) applyChange(entries, change);
    },
  };
}

/**
 * One name has its old state, or that of any of its changes. Each state counts once, even if a temp file came and
 * went.
 */
function nameChoice(changes: readonly EntryChange[], durable: TreeNode | undefined): Choice {
  const seen = new Set([durable]);
  const news = changes.filter(({ node }) => !seen.has(node) && seen.add(node));
  return {
    count: news.length + 1,
    apply: (index, entries) => {
      const change = news[index - 1];
      if (change !== undefined) applyChange(entries, change);
    },
  };
}

/** The content of one file. Many fates of its writes leave the same bytes, so each content counts once. */
function contentChoice(file: FileNode, durable: Uint8Array, layers: readonly Layer[]): Choice {
  let contents: readonly Uint8Array[] = [durable];
  // In order: each layer is applied on top of the previous one.
  for (const { fate, writes } of layers) {
    const fates = fate === "synced" ? [[]] : fatesOf(writes.length);
    contents = distinct(contents.flatMap((below) => fates.map((each) => contentAfter(below, writes, each))));
  }
  return {
    count: contents.length,
    apply: (index, _entries, all) => all.set(file, contents[index] ?? nothing),
  };
}

function distinct(contents: readonly Uint8Array[]): Uint8Array[] {
  return [...new Map(contents.map((bytes) => [Buffer.from(bytes).toString("latin1"), bytes])).values()];
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
  const fill = (from: DirectoryNode, to: DirectoryNode, above: readonly DirectoryNode[]): void => {
    for (const [name, node] of entries.get(from) ?? []) {
      if (node.kind === "directory") {
        // Half of a rename can leave a directory inside itself, where no path reaches it.
        if (above.includes(node)) continue;
        const made = tree.newDirectory(node.ino);
        to.entries.set(name, made);
        fill(node, made, [...above, node]);
      } else {
        const made = files.get(node) ?? tree.newFile(contents.get(node) ?? nothing, node.ino);
        files.set(node, made);
        made.links++;
        to.entries.set(name, made);
      }
    }
  };
  fill(root, tree.root, []);
  return tree;
}
