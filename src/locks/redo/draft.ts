// Redo: changes of the tree that happen together or not at all, in the order of the grants. Committed by an append while the request stands; completed by
// whoever needs the paths next.
import { ensureDirectory, parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { isWithin } from "../../format/path-key.ts";
import { diskError, hasErrno } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import { covers, type Claim } from "../table/claim.ts";
import type { Grant } from "../path/grant.ts";
import type { Keys, Located } from "../naming/lock-key.ts";
import type { LockTable } from "../table/lock-table.ts";
import { doneDirectory, emptyTrash, isInGround, redoDirectory, targetOf } from "./apply.ts";
import { checkSteps, type Kind } from "./preflight.ts";
import type { Redo, RedoStep } from "./record.ts";

/** Open drafts, by the hold whose request they would be committed under: they end with it. */
const openDrafts = new WeakMap<Grant, Set<RedoDraft>>();

interface StagedStep {
  readonly step: RedoStep;
  readonly directory: string;
  /** What it brings, if it brings anything. */
  kind?: Kind | undefined;
  isReady: boolean;
}

/** What is prepared under a hold and not committed yet: nobody can see it. */
export class RedoDraft {
  readonly #table: LockTable;
  readonly #keys: Keys;
  readonly #grant: Grant;
  readonly #id: string;
  readonly #directory: string;
  #steps: readonly StagedStep[] = [];
  #stepsBegun = 0;
  /** What the steps need to be covered by. */
  readonly #needs: Claim[] = [];
  /** "committed" from the first moment in which it may be. */
  #state: "open" | "committed" | "over" = "open";

  private constructor(table: LockTable, keys: Keys, grant: Grant) {
    this.#table = table;
    this.#keys = keys;
    this.#grant = grant;
    this.#id = `${grant.session.holder.id}.${randomName(table.ground.ports.random.bytes(16))}`;
    this.#directory = redoDirectory(table.place, this.#id);
  }

  static async begin(table: LockTable, keys: Keys, grant: Grant): Promise<RedoDraft> {
    grant.mustHold();
    targetOf(table.place, "");
    const draft = new RedoDraft(table, keys, grant);
    draft.#siblings.add(draft);
    await ensureDirectory(table.ground.ports.disk, draft.#directory);
    return draft;
  }

  /**
   * What `fill` makes at the path that it is given, a file or a directory, durable, becomes `target`, where nothing may be; a file may also replace a file. If it
   * fails, nothing is part of the redo.
   */
  async in(target: string, fill: (path: string) => Promise<void>): Promise<void> {
    const to = await this.#check(target);
    await this.#stage({ kind: "in", target: to.path }, async (directory) => {
      await fill(`${directory}/new`);
      const { kind } = await this.#disk.stat(`${directory}/new`);
      if (kind === "directory") this.#mustCover(to, "tree");
      await syncNames(this.#disk, directory);
      return kind;
    });
  }

  /** `target` goes, with all that is below it. */
  async out(target: string): Promise<void> {
    const gone = await this.#check(target);
    if ((await this.#findKind(gone)) === "directory") this.#mustCover(gone, "tree");
    await this.#stage({ kind: "out", target: gone.path });
  }

  /** `source` becomes `target`, where nothing may be; a file may also replace a file. INVALID_PATH when `target` lies below `source`. */
  async move(source: string, target: string): Promise<void> {
    const [from, to] = [await this.#check(source), await this.#check(target)];
    if (to.key !== from.key && isWithin(to.key, from.key))
      throw holdfastError("INVALID_PATH", `${from.path} cannot be moved to ${to.path}, into itself.`, {
        path: to.path,
      });
    if ((await this.#findKind(from)) === "directory") for (const end of [from, to]) this.#mustCover(end, "tree");
    await this.#stage({ kind: "move", source: from.path, target: to.path });
  }

  /**
   * All of it, or nothing. When it resolves, it is done and durable. RESOURCE_BUSY: it is committed and will be completed, but something stands in the way now.
   * OUTCOME_UNKNOWN: the release of the hold finds out. Everything else: nothing happened and nothing will. LOCK_LOST; FILE_EXISTS and NO_SUCH_FILE for steps that
   * could never be done.
   */
  async commit(): Promise<void> {
    await this.#grant.work.during(() => this.#commit());
  }

  /** Nothing of it happens. */
  async discard(): Promise<void> {
    if (this.#state === "open") await this.#remove();
  }

  async #commit(): Promise<void> {
    this.#mustBeOpen();
    if (this.#steps.some(({ isReady }) => !isReady))
      throw new TypeError("A step of this redo is still being staged: wait for it.");
    this.#state = "committed";
    this.#siblings.delete(this);
    const { id, claims } = { id: this.#id, claims: this.#grant.claims };
    const redo: Redo = { id, request: this.#grant.id, claims, steps: this.#steps.map(({ step }) => step) };
    try {
      await this.#append(redo);
    } catch (error) {
      if (isKnownToHaveFailed(error)) await this.#remove();
      throw error;
    }
    // It counts, whatever has happened since: if others have dropped us and completed it, nothing is left to do.
    await completeOwn(this.#table, this.#grant, redo);
    this.#grant.touch(this.#table.ground.ports.clock);
  }

  async #append(redo: Redo): Promise<void> {
    const grant = this.#grant;
    await this.#countSteps();
    const kinds = this.#steps.map(({ kind }) => kind);
    await checkSteps(this.#table.place, redo, kinds);
    await syncNames(this.#disk, this.#directory);
    grant.mustHold();
    // Before it is tried: if the answer is lost, the hold must not end before it is known.
    grant.work.noteRedo(redo);
    let entry;
    let beyond: Claim | undefined;
    try {
      entry = await this.#table.append(
        ({ requests, redos }) => {
          const mine = grant.findRequest(requests);
          // It may have been downgraded since the steps were prepared, and others may be where it does not reach any more.
          const reached = [mine?.claims ?? redo.claims, redo.claims];
          beyond = this.#needs.find((need) => reached.some((claims) => claims.every((claim) => !covers(claim, need))));
          return mine === undefined || beyond !== undefined ? undefined : { requests, redos: [...redos, redo] };
        },
        // Synced, unlike the grants: from here on it must happen, also after a power cut.
        { id: redo.id, sync: true },
      );
    } catch (error) {
      if (isKnownToHaveFailed(error)) grant.work.forgetRedo(redo.id);
      throw error;
    }
    if (entry !== undefined) return;
    grant.work.forgetRedo(redo.id);
    throw beyond === undefined ? grant.loseAsDropped() : notCovered(beyond);
  }

  /** A step is found by its place among all, and some that were begun may have failed. */
  async #countSteps(): Promise<void> {
    for (const [index, { directory }] of this.#steps.entries())
      if (directory !== this.#directoryOf(index) && !(await moveOnce(this.#disk, directory, this.#directoryOf(index))))
        throw diskError("ENOENT", "rename", directory);
  }

  async #stage(step: RedoStep, fill?: (directory: string) => Promise<Kind>): Promise<void> {
    this.#mustBeOpen();
    const staged: StagedStep = { step, directory: this.#directoryOf(this.#stepsBegun++), isReady: false };
    this.#steps = [...this.#steps, staged];
    try {
      await makeUniqueDirectory(this.#disk, staged.directory);
      staged.kind = await fill?.(staged.directory);
      this.#mustBeOpen();
      staged.isReady = true;
    } catch (error) {
      this.#steps = this.#steps.filter((each) => each !== staged);
      // In nobody's way if it stays, and what has failed is what the caller has to know.
      await removeTree(this.#disk, this.#state === "over" ? this.#directory : staged.directory).catch(() => undefined);
      throw error;
    }
  }

  async #remove(): Promise<void> {
    this.#state = "over";
    this.#siblings.delete(this);
    // In nobody's way if it stays: it can no longer be committed.
    await removeTree(this.#disk, this.#directory).catch(() => undefined);
  }

  /** Found out before the commit: afterwards it would block those paths for ever. */
  async #check(path: string): Promise<Located> {
    this.#mustBeOpen();
    const { place } = this.#table;
    const located = await this.#keys.locate(this.#keys.clean(path));
    if (located.path === "") throw holdfastError("INVALID_PATH", "The root itself cannot be changed.", { path });
    if (isInGround(place, located.path))
      throw holdfastError("INVALID_PATH", `${path} is part of the locks themselves, and cannot be changed.`, { path });
    this.#mustCover(located, "exact");
    const parent = parentOf(targetOf(place, located.path));
    const [here, there] = [await this.#disk.stat(this.#directory), await this.#look(parent)];
    if (there?.kind !== "directory")
      throw holdfastError("NO_SUCH_FILE", `${parent} is no directory. Make it first, under a lock on it.`, {
        path: parent,
      });
    if (here.device === there.device) return located;
    const message = `${parent} is on another file system than ${this.#directory}: a file cannot be renamed from one to the other.`;
    throw holdfastError("CROSS_DEVICE", message, { path: parent });
  }

  async #findKind({ path }: Located): Promise<Kind | undefined> {
    return (await this.#look(targetOf(this.#table.place, path)))?.kind;
  }

  /** As the server knows: on a share a `stat` may tell what was there before another machine changed it under its own lock. */
  async #look(path: string): Promise<FileStat | undefined> {
    try {
      return await this.#disk.look(path);
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ENOTDIR")) return undefined;
      throw error;
    }
  }

  #mustCover({ path, key }: Located, mode: "exact" | "tree"): void {
    const need = { path: key, mode, shared: false };
    if (!this.#grant.covers([need])) throw notCovered({ ...need, path });
    this.#needs.push(need);
  }

  #mustBeOpen(): void {
    if (this.#state !== "open") throw new TypeError("This redo is over: begin a new one.");
  }

  #directoryOf(step: number): string {
    return `${this.#directory}/${step}`;
  }

  get #siblings(): Set<RedoDraft> {
    let holder = this.#grant;
    while (holder.isCovered && holder.parent !== undefined) holder = holder.parent;
    const siblings = openDrafts.get(holder) ?? new Set();
    openDrafts.set(holder, siblings);
    return siblings;
  }

  get #disk() {
    return this.#table.ground.ports.disk;
  }
}

function notCovered({ path, mode }: Claim): Error {
  const message = `${path} is not covered by this hold: it takes an exclusive ${mode} lock.`;
  return holdfastError("NOT_HELD", message, { path });
}

/** A list that cannot be read does not tell, and what is not ours may have been thrown after the commit. */
function isKnownToHaveFailed(error: unknown): boolean {
  return isHoldfastError(error) && !isHoldfastError(error, "OUTCOME_UNKNOWN", "CORRUPT", "NEWER_FORMAT");
}

/** Completes what was committed under a hold, and what perhaps was, so that the hold may end or become narrower. RESOURCE_BUSY. */
export async function settleRedos(table: LockTable, grant: Grant): Promise<void> {
  if (grant.work.redos.size === 0) return;
  // Our own append tells the newest list: what is not in it was never committed, or is done.
  const entry = await table.append((list) => list);
  for (const redo of [...grant.work.redos.values()])
    if (entry?.state.redos.some(({ id }) => id === redo.id)) await completeOwn(table, grant, redo);
    else await forget(table, grant, redo, [redoDirectory(table.place, redo.id), doneDirectory(table.place, redo.id)]);
}

/** What was not committed goes with the hold. */
export async function discardDrafts(grant: Grant): Promise<void> {
  for (const draft of openDrafts.get(grant) ?? []) await draft.discard();
}

async function completeOwn(table: LockTable, grant: Grant, redo: Redo): Promise<void> {
  await table.complete(redo);
  // It was kept for us, who know the answer now.
  await forget(table, grant, redo, [doneDirectory(table.place, redo.id)]);
}

async function forget(table: LockTable, grant: Grant, { id }: Redo, remains: readonly string[]): Promise<void> {
  grant.work.forgetRedo(id);
  const { disk } = table.ground.ports;
  try {
    for (const path of remains) await removeTree(disk, path);
  } catch (error) {
    // In nobody's way if it stays, and what the caller asked for is done.
    if (!isHoldfastError(error)) throw error;
  }
  await emptyTrash(table.place);
}
