// RedoDraft: changes of the tree that happen together or not at all, in the order of the grants. An
// append commits them while the request stands; the next process that needs the paths completes
// them.
import { ensureDirectory, parentOf, removeTree, syncNames } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { makeUniqueDirectory } from "../../durable/publish/unique-file.ts";
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { randomName } from "../../format/id.ts";
import { isWithin } from "../../format/path-key.ts";
import { diskError } from "../../ports/disk-error.ts";
import { covers, type Claim } from "../table/claim.ts";
import type { Grant } from "../path/grant.ts";
import type { Keys, Located } from "../naming/lock-key.ts";
import type { LockTable } from "../table/lock-table.ts";
import { asCommitted, emptyTrash } from "./apply.ts";
import { doneDirectory, redoDirectory, targetOf } from "./paths.ts";
import { checkSteps, checkTarget, findStat, mustBeChangeable, type Kind } from "./preflight.ts";
import type { Redo, RedoStep } from "./record.ts";

/** Open drafts by the hold whose request they would be committed under. They end with it. */
const openDrafts = new WeakMap<Grant, Set<RedoDraft>>();

interface StagedStep {
  readonly step: RedoStep;
  directory: string;
  /** Kind of what the step brings, if it brings anything. */
  kind?: Kind | undefined;
  isReady: boolean;
}

/** Changes that are prepared under a hold and not committed yet. No other process sees them. */
export class RedoDraft {
  readonly #table: LockTable;
  readonly #keys: Keys;
  readonly #grant: Grant;
  readonly #id: string;
  readonly #directory: string;
  #steps: readonly StagedStep[] = [];
  #stepsBegun = 0;
  /** The locks that the steps need. */
  readonly #needs: Claim[] = [];
  /** "committed" from the moment in which the commit may have happened. */
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
    // Its name is made durable by the commit, if it must be.
    await ensureDirectory(table.ground.ports.disk, draft.#directory, async () => undefined);
    return draft;
  }

  /**
   * `fill` makes a durable file or directory at the path that it is given, which becomes `target`.
   * Nothing may be there, except that a file may replace a file. If `fill` fails, the step is not
   * part of the redo.
   */
  async in(target: string, fill: (path: string) => Promise<void>): Promise<void> {
    const to = await this.#check(target);
    await this.#stage({ kind: "in", target: to.path }, async (directory) => {
      const path = `${directory}/new`;
      await fill(path);
      const { kind } = await this.#disk.stat(path);
      if (kind === "directory") this.#mustCover(to, "tree");
      return kind;
    });
  }

  /** Removes `target` with all that is below it. */
  async out(target: string): Promise<void> {
    const gone = await this.#check(target);
    if ((await this.#findKind(gone)) === "directory") this.#mustCover(gone, "tree");
    await this.#stage({ kind: "out", target: gone.path });
  }

  /**
   * Moves `source` to `target`. Nothing may be there, except that a file may replace a file.
   * INVALID_PATH when `target` lies below `source`.
   */
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
   * Does all steps or none. When it resolves, they are done and durable. RESOURCE_BUSY with
   * `committed`: they count, and are done as soon as the obstacle is gone. OUTCOME_UNKNOWN: the release of the hold finds
   * out. Any other error: nothing happened and nothing will. LOCK_LOST; FILE_EXISTS and
   * NO_SUCH_FILE for steps that could never be done.
   */
  async commit(): Promise<void> {
    await this.#grant.work.during(() => this.#commit());
  }

  /** None of the steps happens. */
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
    // Committed, whatever has happened since. If other processes have dropped this hold and
    // completed the redo, nothing is left to do.
    try {
      await completeOwn(this.#table, this.#grant, redo);
    } catch (error) {
      throw asCommitted(error);
    }
    this.#grant.touch(this.#table.ground.ports.clock);
  }

  async #append(redo: Redo): Promise<void> {
    const grant = this.#grant;
    await this.#countSteps();
    const kinds = this.#steps.map(({ kind }) => kind);
    await checkSteps(this.#table.place, redo, kinds);
    if (!isOneRename(redo.steps)) {
      // The hold file, too: without it the redo counts as done, and what it has in hand would stay there.
      const holds = parentOf(this.#table.holds.pathOf(grant.id));
      const staged = this.#steps.filter(({ step }) => step.kind === "in").map(({ directory }) => directory);
      for (const directory of [...staged, this.#directory, parentOf(this.#directory), holds])
        await syncNames(this.#disk, directory);
    }
    grant.mustHold();
    // Recorded before the append: if its reply is lost, the hold must not end until the outcome is
    // known.
    grant.work.noteRedo(redo);
    let entry;
    let beyond: Claim | undefined;
    try {
      entry = await this.#table.append(
        ({ requests, redos }) => {
          const mine = grant.findRequest(requests);
          // The hold may have been downgraded since the steps were staged, and other holders may be
          // where it no longer reaches.
          const reached = [mine?.claims ?? redo.claims, redo.claims];
          beyond = this.#needs.find((need) => reached.some((claims) => claims.every((claim) => !covers(claim, need))));
          return mine === undefined || beyond !== undefined ? undefined : { requests, redos: [...redos, redo] };
        },
        // Synced, unlike grants: from here on it must happen, also after a power cut.
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

  /** A step is found by its index, so the directories close the gaps of steps that failed. */
  async #countSteps(): Promise<void> {
    for (const [index, staged] of this.#steps.entries()) {
      const [from, to] = [staged.directory, this.#directoryOf(index)];
      if (from !== to && !(await moveOnce(this.#disk, from, to))) throw diskError("ENOENT", "rename", from);
      staged.directory = to;
    }
  }

  /** `fill` gives the kind of what the step brings. The commit makes the names durable, if it must. */
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
      // The error of the step is what the caller needs; what cannot be removed is in no process's
      // way.
      await removeTree(this.#disk, this.#state === "over" ? this.#directory : staged.directory).catch(() => undefined);
      throw error;
    }
  }

  async #remove(): Promise<void> {
    this.#state = "over";
    this.#siblings.delete(this);
    // If this fails, the directory stays: it can no longer be committed.
    await removeTree(this.#disk, this.#directory).catch(() => undefined);
  }

  /** Checked before the commit: a step that can never be done would block its paths for ever. */
  async #check(path: string): Promise<Located> {
    this.#mustBeOpen();
    const { place: files } = this.#table;
    const located = await this.#keys.locate(this.#keys.clean(path));
    mustBeChangeable(files, path, located.path);
    this.#mustCover(located, "exact");
    await checkTarget(files, this.#directory, located.path);
    return located;
  }

  async #findKind({ path }: Located): Promise<Kind | undefined> {
    return (await findStat(this.#disk, targetOf(this.#table.place, path)))?.kind;
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

/**
 * What is staged for a single `in` or `out` need not be durable before the commit is: if a power cut takes it, the
 * step finds nothing to do, and nothing has happened, which no caller was told otherwise. A file system that keeps the
 * order of names takes it only with the commit. Of several steps, and of a move, which is two, some would be done.
 */
function isOneRename(steps: readonly RedoStep[]): boolean {
  return steps.length === 1 && steps[0]?.kind !== "move";
}

function notCovered({ path, mode }: Claim): Error {
  const message = `${path} is not covered by this hold: it takes an exclusive ${mode} lock.`;
  return holdfastError("NOT_HELD", message, { path });
}

/** An unreadable list says nothing, and an error that is not Holdfast's may follow the commit. */
function isKnownToHaveFailed(error: unknown): boolean {
  return isHoldfastError(error) && !isHoldfastError(error, "OUTCOME_UNKNOWN", "CORRUPT", "NEWER_FORMAT");
}

/**
 * Completes what was committed under a hold, or may have been, so that the hold may end or be
 * downgraded. RESOURCE_BUSY.
 */
export async function settleRedos(table: LockTable, grant: Grant): Promise<void> {
  if (grant.work.redos.size === 0) return;
  // Our own append returns the newest list. A redo that is not in it was never committed, or is
  // done.
  const entry = await table.append((list) => list);
  for (const redo of [...grant.work.redos.values()])
    if (entry?.state.redos.some(({ id }) => id === redo.id)) await completeOwn(table, grant, redo);
    else await forget(table, grant, redo, [redoDirectory(table.place, redo.id), doneDirectory(table.place, redo.id)]);
}

/** Drafts that were not committed end with the hold. */
export async function discardDrafts(grant: Grant): Promise<void> {
  for (const draft of openDrafts.get(grant) ?? []) await draft.discard();
}

async function completeOwn(table: LockTable, grant: Grant, redo: Redo): Promise<void> {
  await table.complete(redo);
  // The mark was kept for this process, which knows the outcome now.
  await forget(table, grant, redo, [doneDirectory(table.place, redo.id)]);
}

async function forget(table: LockTable, grant: Grant, redo: Redo, remains: readonly string[]): Promise<void> {
  grant.work.forgetRedo(redo.id);
  const { disk } = table.ground.ports;
  try {
    // What is done is an empty directory. Whatever else is there, or happens, is left to the removal of a tree.
    for (const path of remains) await disk.rmdir(path).catch(() => removeTree(disk, path));
  } catch (error) {
    // The change is done; what cannot be removed is in no process's way.
    if (!isHoldfastError(error)) throw error;
  }
  if (redo.steps.some(({ kind }) => kind === "out")) await emptyTrash(table.place);
}
