// RedoDraft: changes of the tree that happen together or not at all, in the order of the grants. An
// append commits them while the request stands. If the committer dies, the next process that needs
// the paths completes them.
import { ensureDirectory, parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { isWithin } from "../../format/path-key.ts";
import { diskError } from "../../ports/disk-error.ts";
import type { FileStat } from "../../ports/disk.ts";
import { covers, type Claim } from "../table/conflict.ts";
import type { Grant } from "../path/grant.ts";
import type { Keys, Located } from "../naming/lock-key.ts";
import type { LockTable } from "../table/lock-table.ts";
import type { RequestTable } from "../table/request-table.ts";
import { asCommitted, emptyTrash } from "./apply.ts";
import { doneDirectory, redoDirectory, targetOf, type RedoFiles, type Redo, type RedoStep } from "./redo.ts";
import { checkSteps, checkTarget, findStat, mustBeChangeable, type EntryKind } from "./preflight.ts";

/** A path, or the location that the caller resolved under the hold. */
type Target = string | Located;

/**
 * Open drafts, by the hold under whose request they would be committed. They end with that hold.
 */
const openDrafts = new WeakMap<Grant, Set<RedoDraft>>();

export interface DraftOptions {
  /** The draft has exactly one step, which makes it cheaper. Default: any number. */
  readonly isSingle?: boolean;
}

interface StagedStep {
  readonly step: RedoStep;
  directory: string;
  /** Kind of the entry that the step brings, if any. */
  kind?: EntryKind | undefined;
  isReady: boolean;
}

/** Changes prepared under a hold and not committed yet. No other process sees them. */
export class RedoDraft {
  readonly #table: LockTable;
  readonly #keys: Keys;
  readonly #grant: Grant;
  readonly #id: string;
  readonly #directory: string;
  #steps: readonly StagedStep[] = [];
  #stepsBegun = 0;
  readonly #needs: Claim[] = [];
  /** "committed" from the moment at which the commit may have happened. */
  #state: "open" | "committed" | "over" = "open";

  readonly #isFlat: boolean;

  private constructor(table: LockTable, keys: Keys, grant: Grant, isFlat: boolean) {
    this.#table = table;
    this.#isFlat = isFlat;
    this.#keys = keys;
    this.#grant = grant;
    this.#id = `${grant.session.holder.id}.${randomName(table.ground.ports.random.bytes(16))}`;
    this.#directory = redoDirectory(table.redoFiles, this.#id);
  }

  static async begin(
    table: LockTable,
    keys: Keys,
    grant: Grant,
    { isSingle = false }: DraftOptions = {},
  ): Promise<RedoDraft> {
    grant.mustHold();
    targetOf(table.redoFiles, "");
    // Releases that do not know flat redos refuse a table with deltas.
    const draft = new RedoDraft(table, keys, grant, isSingle && (await table.hasDeltas()));
    draft.#siblings.add(draft);
    // The commit makes the directory's name durable if necessary.
    if (!draft.#isFlat) await ensureDirectory(table.ground.ports.disk, draft.#directory, async () => undefined);
    return draft;
  }

  /**
   * `fill` makes a durable file or directory at the path that it gets; the commit moves it to
   * `target`. Nothing may exist there, except that a file may replace a file. If `fill` fails, the
   * step is dropped from the redo. Returns the stat of the new entry.
   */
  async in(target: Target, fill: (path: string) => Promise<void>): Promise<FileStat> {
    const to = await this.#check(target);
    return await this.#stage({ kind: "in", target: to.path }, async (directory) => {
      const path = this.#isFlat ? directory : `${directory}/new`;
      await fill(path);
      const made = await this.#disk.look(path);
      if (made.kind === "directory") this.#mustCover(to, "tree");
      return made;
    });
  }

  /** Removes `target` and everything below it. */
  async out(target: Target): Promise<void> {
    const gone = await this.#check(target);
    if ((await this.#findKind(gone)) === "directory") this.#mustCover(gone, "tree");
    await this.#stage({ kind: "out", target: gone.path }, async () => undefined);
  }

  /**
   * Moves `source` to `target`. Nothing may exist there, except that a file may replace a file.
   * Throws INVALID_PATH if `target` lies below `source`.
   */
  async move(source: Target, target: Target): Promise<void> {
    const [from, to] = [await this.#check(source), await this.#check(target)];
    if (to.key !== from.key && isWithin(to.key, from.key))
      throw holdfastError("INVALID_PATH", `${from.path} cannot be moved to ${to.path}, into itself.`, {
        path: to.path,
      });
    if ((await this.#findKind(from)) === "directory") for (const end of [from, to]) this.#mustCover(end, "tree");
    await this.#stage({ kind: "move", source: from.path, target: to.path }, async () => undefined);
  }

  /**
   * Does all steps or none; when it resolves, they are done and durable. Throws RESOURCE_BUSY with
   * `committed` if they are committed and will be done when the obstacle is gone. Throws
   * OUTCOME_UNKNOWN if the answer was lost; releasing the hold settles it. After any other error
   * nothing has happened and nothing will: LOCK_LOST, or FILE_EXISTS and NO_SUCH_FILE for steps
   * that could never be done.
   */
  async commit(): Promise<void> {
    await this.#grant.during(() => this.#commit());
  }

  /** Discards all steps. */
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
    const steps = this.#steps.map(({ step }) => step);
    // A draft without steps has no entry in `redo/`.
    const isFlat = this.#isFlat && steps.length > 0;
    const redo: Redo = { id, request: this.#grant.id, claims, steps, ...(isFlat ? { flat: true } : {}) };
    try {
      await this.#append(redo);
    } catch (error) {
      if (isKnownToHaveFailed(error)) await this.#remove();
      throw error;
    }
    // Committed, whatever happens next. If other processes have dropped this hold and completed the
    // redo, nothing is left to do.
    try {
      await completeOwn(this.#table, this.#table.redoFiles, this.#grant, redo);
    } catch (error) {
      throw asCommitted(error);
    }
    this.#grant.touch();
  }

  async #append(redo: Redo): Promise<void> {
    const grant = this.#grant;
    await this.#countSteps();
    const kinds = this.#steps.map(({ kind }) => kind);
    await checkSteps(this.#table.redoFiles, redo, kinds);
    if (!isOneRename(redo.steps)) {
      // Syncs the hold file too: without it the redo would count as done, and its staged content
      // would remain.
      const holds = parentOf(this.#table.markOf(grant.id));
      const staged = this.#steps.filter(({ step }) => step.kind === "in").map(({ directory }) => directory);
      const made = this.#isFlat ? [] : [...staged, this.#directory];
      for (const directory of [...made, parentOf(this.#directory), holds]) await syncNames(this.#disk, directory);
    }
    grant.mustHold();
    // Recorded before the append: if the reply is lost, the hold must not end until the outcome is
    // known.
    grant.redos.set(redo.id, redo);
    let entry;
    let beyond: Claim | undefined;
    try {
      entry = await this.#table.append(
        ({ requests, redos }) => {
          const mine = grant.findRequest(requests);
          // The hold may have been downgraded since the steps were staged, so other processes may
          // hold what it no longer covers.
          const reached = [mine?.claims ?? redo.claims, redo.claims];
          beyond = this.#needs.find((need) => reached.some((claims) => claims.every((claim) => !covers(claim, need))));
          return mine === undefined || beyond !== undefined ? undefined : { requests, redos: [...redos, redo] };
        },
        // Synced, unlike grants: from here on the redo must happen, even after a power cut.
        { id: redo.id, sync: true },
      );
    } catch (error) {
      if (isKnownToHaveFailed(error)) grant.redos.delete(redo.id);
      throw error;
    }
    if (entry !== undefined) return;
    grant.redos.delete(redo.id);
    throw beyond === undefined ? grant.loseAsDropped() : notCovered(beyond);
  }

  /** Renames directories to close the gaps of failed steps: a step is found by its index. */
  async #countSteps(): Promise<void> {
    for (const [index, staged] of this.#steps.entries()) {
      const [from, to] = [staged.directory, this.#directoryOf(index)];
      if (from !== to && !(await moveOnce(this.#disk, from, to))) throw diskError("ENOENT", "rename", from);
      staged.directory = to;
    }
  }

  /**
   * Stages a step; `fill` makes the content that it brings. The commit makes the names durable if
   * necessary.
   */
  async #stage<S extends FileStat | void>(step: RedoStep, fill: (directory: string) => Promise<S>): Promise<S> {
    this.#mustBeOpen();
    if (this.#isFlat && this.#stepsBegun > 0) throw new TypeError("This redo was begun for one step.");
    const staged: StagedStep = { step, directory: this.#directoryOf(this.#stepsBegun++), isReady: false };
    this.#steps = [...this.#steps, staged];
    try {
      // A flat `in` stages its content as `redo/<id>` itself.
      if (!this.#isFlat || step.kind !== "in") await makeUniqueDirectory(this.#disk, staged.directory);
      const made = await fill(staged.directory);
      staged.kind = made?.kind;
      this.#mustBeOpen();
      staged.isReady = true;
      return made;
    } catch (error) {
      this.#steps = this.#steps.filter((each) => each !== staged);
      // The caller needs the error of the step. Whatever cannot be removed now blocks no process.
      await removeTree(this.#disk, this.#state === "over" ? this.#directory : staged.directory).catch(() => undefined);
      throw error;
    }
  }

  async #remove(): Promise<void> {
    this.#state = "over";
    this.#siblings.delete(this);
    // If this fails the directory remains, but it can no longer be committed.
    await removeTree(this.#disk, this.#directory).catch(() => undefined);
  }

  /**
   * Checks a target before the commit: a committed step that can never be done would block its
   * paths forever.
   */
  async #check(target: Target): Promise<Located> {
    this.#mustBeOpen();
    const { redoFiles: files } = this.#table;
    const isLocated = typeof target !== "string";
    const located = isLocated ? target : await this.#keys.locate(this.#keys.clean(target));
    mustBeChangeable(files, isLocated ? target.path : target, located.path);
    this.#mustCover(located, "exact");
    await checkTarget(files, located.path);
    return located;
  }

  async #findKind({ path }: Located): Promise<EntryKind | undefined> {
    return (await findStat(this.#disk, targetOf(this.#table.redoFiles, path)))?.kind;
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
    return this.#isFlat ? this.#directory : `${this.#directory}/${step}`;
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

/**
 * True for a single `in` or `out`, whose staged content need not be durable before the commit. If a
 * power cut removes the content, the step finds nothing to do, and no caller was told that it
 * happened. A file system that keeps the order of names loses it only together with the commit.
 * With several steps, or with a move, which takes two renames, only some might be done.
 */
function isOneRename(steps: readonly RedoStep[]): boolean {
  return steps.length === 1 && steps[0]?.kind !== "move";
}

function notCovered({ path, mode }: Claim): Error {
  const message = `${path} is not covered by this hold: it takes an exclusive ${mode} lock.`;
  return holdfastError("NOT_HELD", message, { path });
}

/**
 * False if the commit may have happened: an unreadable list proves nothing, and an error that is
 * not Holdfast's may follow the commit.
 */
function isKnownToHaveFailed(error: unknown): boolean {
  return isHoldfastError(error) && !isHoldfastError(error, "OUTCOME_UNKNOWN", "CORRUPT", "NEWER_FORMAT");
}

/**
 * Completes redos that were or may have been committed under a hold, so that the hold can end or be
 * downgraded. Throws RESOURCE_BUSY.
 */
export async function settleRedos(table: RequestTable, grant: Grant): Promise<void> {
  const { redoFiles } = table;
  if (redoFiles === undefined || grant.redos.size === 0) return;
  // This append returns the newest list. A redo that is not in it was never committed, or is done.
  const entry = await table.append((list) => list);
  for (const redo of [...grant.redos.values()])
    if (entry?.state.redos.some(({ id }) => id === redo.id)) await completeOwn(table, redoFiles, grant, redo);
    else await forget(redoFiles, grant, redo, [redoDirectory(redoFiles, redo.id), doneDirectory(redoFiles, redo.id)]);
}

/** Discards drafts that were not committed; called when the hold ends. */
export async function discardDrafts(grant: Grant): Promise<void> {
  for (const draft of openDrafts.get(grant) ?? []) await draft.discard();
}

async function completeOwn(table: RequestTable, place: RedoFiles, grant: Grant, redo: Redo): Promise<void> {
  await table.complete(redo);
  // The mark was kept for this process, which knows the outcome now.
  await forget(place, grant, redo, redo.flat ? [] : [doneDirectory(place, redo.id)]);
}

async function forget(place: RedoFiles, grant: Grant, redo: Redo, remains: readonly string[]): Promise<void> {
  grant.redos.delete(redo.id);
  const { disk } = place.ports;
  try {
    // A finished redo leaves an empty directory. If it is not empty, or rmdir fails, the tree is
    // removed.
    for (const path of remains) await disk.rmdir(path).catch(() => removeTree(disk, path));
  } catch (error) {
    // The change is done; whatever cannot be removed now blocks no process.
    if (!isHoldfastError(error)) throw error;
  }
  if (redo.steps.some(({ kind }) => kind === "out")) await emptyTrash(place);
}
