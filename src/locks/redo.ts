// Redo: changes of the tree that happen together or not at all, in the order of the grants. Committed by an append while the request stands; completed by
// whoever needs the paths next.
import { ensureDirectory, parentOf, removeTree, syncNames } from "../durable/directory.ts";
import { makeOwnDirectory } from "../durable/own-name.ts";
import { holdfastError, isHoldfastError } from "../errors.ts";
import { randomName } from "../format/id.ts";
import { hasErrno } from "../ports/disk-error.ts";
import type { Claim } from "./claim.ts";
import { covers } from "./conflict.ts";
import type { Grant } from "./grant.ts";
import type { Keys } from "./lock-key.ts";
import type { LockTable } from "./lock-table.ts";
import { doneDirectory, redoDirectory, targetOf, trashDirectory } from "./redo-apply.ts";
import type { Redo, RedoStep } from "./redo-record.ts";
import { findOwn, loseIt } from "./width.ts";

/** What is prepared under a hold and not committed yet: nobody can see it. */
export class RedoDraft {
  readonly #table: LockTable;
  readonly #keys: Keys;
  readonly #grant: Grant;
  readonly #id: string;
  readonly #directory: string;
  readonly #steps: RedoStep[] = [];
  /** What the steps need. */
  readonly #needs: Claim[] = [];
  #isOver = false;

  private constructor(table: LockTable, keys: Keys, grant: Grant) {
    this.#table = table;
    this.#keys = keys;
    this.#grant = grant;
    this.#id = `${grant.life.holder.id}.${randomName(table.ground.ports.random.bytes(16))}`;
    this.#directory = redoDirectory(table.place, this.#id);
  }

  static async begin(table: LockTable, keys: Keys, grant: Grant): Promise<RedoDraft> {
    grant.mustHold();
    const draft = new RedoDraft(table, keys, grant);
    await ensureDirectory(table.ground.ports.disk, draft.#directory);
    return draft;
  }

  /** What `fill` makes at the path that it is given, a file or a directory, durable, becomes `target`, replacing a file that is there. */
  async in(target: string, fill: (path: string) => Promise<void>): Promise<void> {
    const clean = await this.#check(target);
    const directory = await this.#nextStep({ kind: "in", target: clean });
    await fill(`${directory}/new`);
    const { kind } = await this.#disk.stat(`${directory}/new`);
    if (kind === "directory") await this.#mustCover(clean, "tree");
    await syncNames(this.#disk, directory);
  }

  /** `target` goes, with all that is below it. */
  async out(target: string): Promise<void> {
    const clean = await this.#check(target);
    await this.#mustCoverWhatIsThere(clean);
    await this.#nextStep({ kind: "out", target: clean });
  }

  /** `source` becomes `target`, where nothing but a file may be. */
  async move(source: string, target: string): Promise<void> {
    const [from, to] = [await this.#check(source), await this.#check(target)];
    await this.#mustCoverWhatIsThere(from);
    await this.#nextStep({ kind: "move", source: from, target: to });
  }

  /**
   * All of it, or nothing. When it resolves, it is done and durable. LOCK_LOST: nothing happened and nothing will. RESOURCE_BUSY: it is
   * committed and will be completed, but something stands in the way now. OUTCOME_UNKNOWN: the release of the hold finds out.
   */
  async commit(): Promise<void> {
    await this.#grant.during(() => this.#commit());
  }

  async #commit(): Promise<void> {
    const { grant, redo } = { grant: this.#grant, redo: this.#redo };
    if (this.#isOver) throw new TypeError("This redo is over: begin a new one.");
    this.#isOver = true;
    await syncNames(this.#disk, this.#directory);
    grant.mustHold();
    // Before it is tried: if the answer is lost, the hold must not end before it is known.
    grant.redos.set(redo.id, redo);
    let entry;
    let beyond: Claim | undefined;
    try {
      entry = await this.#table.append(
        ({ requests, redos }) => {
          const mine = findOwn(requests, grant);
          // It may have been downgraded since the steps were prepared, and others may be where it does not reach any more.
          beyond = this.#needs.find((need) => mine?.claims.every((claim) => !covers(claim, need)));
          return mine === undefined || beyond !== undefined ? undefined : { requests, redos: [...redos, redo] };
        },
        // Synced, unlike the grants: from here on it must happen, also after a power cut.
        { id: redo.id, sync: true },
      );
    } catch (error) {
      if (!isHoldfastError(error, "OUTCOME_UNKNOWN")) grant.redos.delete(redo.id);
      throw error;
    }
    if (entry === undefined) {
      grant.redos.delete(redo.id);
      await removeTree(this.#disk, this.#directory);
      throw beyond === undefined ? loseIt(grant) : notCovered(beyond);
    }
    // It counts, whatever has happened since: if others have dropped us and completed it, nothing is left to do.
    await completeOwn(this.#table, grant, redo);
    grant.touch(this.#table.ground.ports.clock);
  }

  /** Nothing of it happens. */
  async discard(): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await removeTree(this.#disk, this.#directory);
  }

  get #redo(): Redo {
    return { id: this.#id, request: this.#grant.id, claims: this.#grant.claims, steps: this.#steps };
  }

  get #disk() {
    return this.#table.ground.ports.disk;
  }

  async #nextStep(step: RedoStep): Promise<string> {
    const directory = `${this.#directory}/${this.#steps.length}`;
    this.#steps.push(step);
    await makeOwnDirectory(this.#disk, directory);
    return directory;
  }

  /** Found out before the commit: afterwards it would block those paths for ever. */
  async #check(path: string): Promise<string> {
    const clean = this.#keys.clean(path);
    if (clean === "") throw holdfastError("INVALID_PATH", "The root itself cannot be changed.", { path });
    await this.#mustCover(clean, "exact");
    const parent = parentOf(targetOf(this.#table.place, clean));
    try {
      const [here, there] = [await this.#disk.stat(this.#directory), await this.#disk.stat(parent)];
      if (here.device === there.device) return clean;
      const message = `${parent} is on another file system than ${this.#directory}: a file cannot be renamed from one to the other.`;
      throw holdfastError("CROSS_DEVICE", message, { path: parent });
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
      const message = `${parent} does not exist. Make it first, under a lock on it.`;
      throw holdfastError("NO_SUCH_FILE", message, { path: parent }, error);
    }
  }

  async #mustCoverWhatIsThere(clean: string): Promise<void> {
    try {
      const { kind } = await this.#disk.stat(targetOf(this.#table.place, clean));
      if (kind === "directory") await this.#mustCover(clean, "tree");
    } catch (error) {
      if (!hasErrno(error, "ENOENT", "ENOTDIR")) throw error;
    }
  }

  async #mustCover(clean: string, mode: "exact" | "tree"): Promise<void> {
    const need = { path: await this.#keys.keyOf(clean), mode, shared: false };
    if (!this.#grant.covers([need])) throw notCovered({ ...need, path: clean });
    this.#needs.push(need);
  }
}

function notCovered({ path, mode }: Claim): Error {
  const message = `${path} is not covered by this hold: it takes an exclusive ${mode} lock.`;
  return holdfastError("NOT_HELD", message, { path });
}

/** Completes what was committed under a hold, and what perhaps was, so that the hold may end. RESOURCE_BUSY. */
export async function settleRedos(table: LockTable, grant: Grant): Promise<void> {
  if (grant.redos.size === 0) return;
  // Our own append tells the newest list: what is not in it was never committed, or is done.
  const entry = await table.append((list) => list);
  for (const redo of [...grant.redos.values()])
    if (entry?.state.redos.some(({ id }) => id === redo.id)) await completeOwn(table, grant, redo);
    else grant.redos.delete(redo.id);
}

async function completeOwn(table: LockTable, grant: Grant, redo: Redo): Promise<void> {
  await table.complete(redo);
  grant.redos.delete(redo.id);
  const { disk } = table.ground.ports;
  // It was kept for us, who know the answer now.
  await removeTree(disk, doneDirectory(table.place, redo.id));
  for (const name of await disk.list(trashDirectory(table.place)))
    await removeTree(disk, `${trashDirectory(table.place)}/${name}`);
}
