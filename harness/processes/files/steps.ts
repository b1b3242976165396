// Names the steps of an operation on a tree, and of the work on it, as the rows of the failure tables do.
import type { DiskChange } from "../crash-point-disk.ts";

interface Table {
  readonly requests: readonly { readonly id: string; readonly holder: string; readonly transfer?: object }[];
  readonly redos: readonly { readonly id: string }[];
}

/** Files whose arrival is a step of its own. */
const sidecars = [".abstract.md", ".overview.md"];

/**
 * Names the steps of one process. It remembers the records that the process has staged, because only the content shows
 * what an append to the lock table does.
 */
export class TreeSteps {
  readonly #root: string;
  readonly #staged = new Map<string, Uint8Array>();
  /** The finished redos: a later record of the table may still contain them. */
  readonly #done = new Set<string>();

  /** `root`: the root of the tree. */
  constructor(root: string) {
    this.#root = root;
  }

  readonly stepOf = ({ operation, path, target = "", bytes }: DiskChange): string | undefined => {
    const [from, to] = [this.#roomOf(path), this.#roomOf(target)];
    switch (operation) {
      case "createFile":
        if (from === "temp" && bytes !== undefined) this.#staged.set(path, bytes);
        if (from === "redo") return "staging a file";
        return path.endsWith(".transfer") ? "preparing the offer" : undefined;
      case "link":
        return this.#stepOfLink(path, from, target, to);
      case "rename":
        return this.#stepOfRename(path, from, target, to);
      case "unlink":
        if (from === "holds") return path.endsWith(".transfer") ? "withdrawing the offer" : "releasing the lock";
        return from === "outside" ? "removing a prepared file" : undefined;
      case "rmdir":
        this.#noteDone(path, from);
        return from === "redo" ? "closing the step" : undefined;
      case "mkdir":
        return undefined;
    }
  };

  #stepOfLink(path: string, from: string, target: string, to: string): string | undefined {
    if (to === "table") return from === "holds" ? "taking the lock" : this.#stepOfAppend(path);
    if (to === "redo") return "staging a file";
    if (to !== "files") return undefined;
    const [room = "", ...below] = this.#partsOf(target).slice(2);
    if (room === "changes") return "announcing the change";
    if (room === "documents") return below[0] === "outcomes" ? "publishing the outcome" : "publishing a document";
    if (room === "sidecars") return below[1] === "epochs" ? undefined : "noting a version";
    if (room === "sessions") return below[1] === "archives" ? "archiving the messages" : undefined;
    if (room !== "queue") return undefined;
    if (below[0] === "keys") return "claiming the key of a ticket";
    return below[0] === "ledger" ? "noting the task as done" : undefined;
  }

  #stepOfAppend(path: string): string | undefined {
    const bytes = this.#staged.get(path);
    const table = bytes === undefined ? undefined : findTable(bytes);
    const own = this.#partsOf(path)[2];
    if (table === undefined || own === undefined) return undefined;
    if (table.redos.some(({ id }) => id.startsWith(own) && !this.#done.has(id))) return "committing";
    const mine = table.requests.filter(({ holder }) => holder === own);
    if (mine.some(({ transfer }) => transfer !== undefined)) return "offering the lock";
    return mine.some(({ id }) => !id.startsWith(own)) ? "receiving the lock" : undefined;
  }

  #stepOfRename(path: string, from: string, target: string, to: string): string | undefined {
    if (from === "tree") return "taking it out of the tree";
    if (to === "tree") {
      this.#noteDone(path, from);
      const name = nameOf(target);
      return sidecars.includes(name) ? `bringing in ${name}` : "bringing it in";
    }
    if (to === "trash") return from === "redo" ? "throwing it away" : undefined;
    if (to === "done") {
      this.#done.add(nameOf(path));
      return "marking it as done";
    }
    if (to !== "files") return undefined;
    const room = this.#partsOf(target)[3];
    if (room === "incoming" && this.#partsOf(path)[3] === "staging") return "making the ticket";
    if (room === "processing") return "claiming the ticket";
    return room === "archive" ? "archiving the ticket" : undefined;
  }

  /** A flat redo is finished when `redo/<id>` is gone. */
  #noteDone(path: string, from: string): void {
    if (from === "redo" && this.#partsOf(path).length === 3) this.#done.add(nameOf(path));
  }

  /** Returns "tree", the directory inside the ground, or "outside". */
  #roomOf(path: string): string {
    const [first, second = ""] = this.#partsOf(path);
    if (first === undefined) return "outside";
    return first === ".holdfast" ? second : "tree";
  }

  /** Returns the parts of a path below the root, or none for any other path. */
  #partsOf(path: string): string[] {
    return path.startsWith(`${this.#root}/`) ? path.slice(this.#root.length + 1).split("/") : [];
  }
}

/** Returns undefined for any other record. */
function findTable(bytes: Uint8Array): Table | undefined {
  const { kind, body } = JSON.parse(Buffer.from(bytes).toString()) as { kind: string; body: { state?: Table } };
  return kind === "lock table slot" ? body.state : undefined;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
