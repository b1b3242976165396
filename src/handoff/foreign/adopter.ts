// Adoption: turns files that another program put into a plain folder into tickets, each file once,
// no matter how many processes adopt from that folder.
import { posix } from "node:path";
import { isHoldfastError } from "../../errors.ts";
import { hasErrno, findIfThere } from "../../ports/disk-error.ts";
import { isId } from "../../format/id.ts";
import { parentOf } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import { assertNotSwept } from "../../durable/publish/staging.ts";
import { namesIn } from "../box/names.ts";
import { asJson, checkFileName } from "../model/arguments.ts";
import { findCandidates, isSame, manifestBytesMax, type Candidate, type Observations } from "./candidates.ts";
import { ClaimEntry, fileName, signalName, type ClaimOrigin } from "./claim-entry.ts";
import { completeClaim, settleClaim, type AdoptingBox, type CompletionOptions } from "./complete-claim.ts";
import type { ForeignFolder } from "./folder.ts";
import { faultOf, FolderProblems, isBeyondEntry, restMs, type FolderFault, type ProblemOptions } from "./problems.ts";
import type { AdoptRule } from "../model/foreign-rule.ts";
import { sha256Of } from "../../format/checksum.ts";

export class Adopter {
  readonly #adopting: AdoptingBox;
  readonly #folder: ForeignFolder;
  readonly #rule: AdoptRule;
  readonly #observations: Observations = new Map();
  readonly #problems: FolderProblems;
  /**
   * Entries whose adoption failed, by the name of the signal or the path of the claim. They are
   * skipped until `untilMs`.
   */
  readonly #resting = new Map<string, { readonly untilMs: number; readonly fault: FolderFault }>();

  constructor(adopting: AdoptingBox, folder: ForeignFolder, rule: AdoptRule, options: ProblemOptions = {}) {
    this.#adopting = adopting;
    this.#folder = folder;
    this.#rule = rule;
    this.#problems = new FolderProblems(adopting.box, folder.path, options);
  }

  /**
   * Makes one pass over the folder and returns how many tickets it made. If an entry cannot be
   * adopted, the pass reports it and continues. A failure of the box or its disk is thrown at the
   * end.
   */
  async pass(signal?: AbortSignal): Promise<number> {
    const { box } = this.#adopting;
    const failures: unknown[] = [];
    const session = await box.ground.session();
    const tell = this.#problems.report.bind(this.#problems);
    const nowMs = box.ground.ports.clock.monotonicMs();
    const onFailure = async (name: string, at: string, error: unknown): Promise<void> => {
      signal?.throwIfAborted();
      if (isBeyondEntry(error) || hasErrno(error, "ENOENT")) return void failures.push(error);
      const fault = faultOf(name, error);
      // These are tried again in the next pass: a permission or a name may be corrected at any
      // moment, and the check is cheap.
      if (!isHoldfastError(error, "NO_PERMISSION", "INVALID_NAME"))
        this.#resting.set(at, { untilMs: nowMs + restMs, fault });
      await tell(fault);
    };
    const isResting = async (at: string): Promise<boolean> => {
      const rest = this.#resting.get(at);
      if (rest === undefined) return false;
      if (rest.untilMs <= nowMs) this.#resting.delete(at);
      else await tell(rest.fault);
      return rest.untilMs > nowMs;
    };
    const recovering = { rule: this.#rule, tell, onFailure, isResting };
    let count = await recoverClaims(this.#adopting, this.#folder, recovering);
    const search = { nowMs, observations: this.#observations, tell };
    for (const candidate of await findCandidates(this.#folder, this.#rule, search)) {
      signal?.throwIfAborted();
      await this.#adopting.mustHaveRoom();
      const name = candidate.signal ?? candidate.files[0]?.name ?? "";
      if (await isResting(name)) continue;
      try {
        if (await this.#adopt(candidate)) count++;
      } catch (error) {
        if (isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "CLOSED")) throw error;
        await onFailure(name, name, error);
      }
    }
    await this.#problems.endPass();
    await this.#leave();
    // If other processes judged this one dead, the directory of its claims is gone. Throws
    // LOCK_LOST.
    if (failures.some((error) => hasErrno(error, "ENOENT"))) await assertNotSwept(session.staging, session.temp);
    if (failures.length > 0) throw failures[0];
    return count;
  }

  /** Returns false if another process has the candidate, or if its ticket is already published. */
  async #adopt(candidate: Candidate): Promise<boolean> {
    const { box } = this.#adopting;
    const { disk, path, claims } = this.#folder;
    for (const { name } of candidate.files) {
      checkFileName(name);
      // Checked before the claim: a file that this user cannot read could perhaps not be given
      // back.
      if (!(await isReadable(this.#folder, name))) return false;
    }
    const session = await box.ground.session();
    const entry = new ClaimEntry(disk, `${claims}/${session.holder.id}/${box.newId()}`, box.isSynced);
    const origin = originOf(this.#folder, this.#rule, candidate);
    box.inProgress.add(entry.path);
    try {
      await entry.begin(origin);
      if (!(await this.#claim(entry, origin, candidate))) {
        await entry.giveBack(origin, path);
        return false;
      }
      return await this.#complete(entry, origin);
    } finally {
      box.inProgress.delete(entry.path);
    }
  }

  /**
   * If the claim cannot be completed because of its files, gives them back to the folder if
   * possible.
   */
  async #complete(entry: ClaimEntry, origin: ClaimOrigin): Promise<boolean> {
    const { path } = this.#folder;
    const tell = this.#problems.report.bind(this.#problems);
    try {
      return await completeClaim(this.#adopting, entry, origin, path, { rule: this.#rule, tell });
    } catch (error) {
      // In all other cases the claim stays, and the next pass tries again.
      const { isPublished } = await entry.state();
      if (!isBeyondEntry(error) && !isPublished) await entry.giveBack(origin, path).catch(() => false);
      throw error;
    }
  }

  /** Claims the signal first: otherwise the producer's next signal could be mistaken for that of these files. */
  async #claim(entry: ClaimEntry, origin: ClaimOrigin, { signalSha256, seen }: Candidate): Promise<boolean> {
    const { disk, path } = this.#folder;
    if (origin.signal !== undefined && !(await entry.take(`${path}/${origin.signal}`, signalName))) return false;
    if (signalSha256 !== undefined) {
      const bytes = await disk.readFile(`${entry.path}/${signalName}`, manifestBytesMax);
      if (sha256Of(bytes) !== signalSha256) return false;
    }
    for (const [index, { name }] of origin.files.entries())
      if (!(await entry.take(`${path}/${name}`, fileName(index)))) return false;
    return seen === undefined || isSame(seen, await disk.look(`${entry.path}/${fileName(0)}`));
  }

  /** Removes directories that are empty. `rmdir` spares one that still has a claim. */
  async #leave(): Promise<void> {
    const { disk, claims, isInBox } = this.#folder;
    const { holder } = await this.#adopting.box.ground.session();
    const empty = [`${claims}/${holder.id}`, ...(isInBox ? [] : [claims, parentOf(claims)])];
    for (const directory of empty) await disk.rmdir(directory).catch(() => undefined);
  }
}

/** Returns false if the file is gone. Rejects if this user may not read it. */
async function isReadable({ disk, path }: ForeignFolder, name: string): Promise<boolean> {
  const file = await findIfThere(disk.open(`${path}/${name}`, "read"));
  await file?.close();
  return file !== undefined;
}

function originOf({ path, claims }: ForeignFolder, rule: AdoptRule, candidate: Candidate): ClaimOrigin {
  const { signal, files, key: sentKey } = candidate;
  const { key, group, meta } = rule;
  const byRule = key === "content" ? "content" : "function";
  return {
    folder: posix.relative(claims, path),
    ...(signal === undefined ? {} : { signal }),
    files: files.map(({ key: _key, ...file }) => file),
    key: key !== undefined ? byRule : sentKey !== undefined ? "manifest" : "claim",
    ...(sentKey === undefined ? {} : { sentKey }),
    ...(group === undefined ? {} : { group }),
    ...(meta === undefined ? {} : { meta: asJson("adopt: meta", meta) }),
  };
}

/**
 * Takes over the claims of dead processes, and those that this process left unfinished. Returns how
 * many tickets that made. One process wins each claim, by a rename of the whole directory.
 */
export async function recoverClaims(
  adopting: AdoptingBox,
  { disk, claims }: Pick<ForeignFolder, "disk" | "claims">,
  { isResting, onFailure, ...completing }: RecoverOptions = {},
): Promise<number> {
  const { box } = adopting;
  let count = 0;
  for (const holder of (await namesIn(disk, claims)).filter(isId)) {
    const own = (await box.ground.session()).holder.id;
    if (holder !== own && !(await box.ground.settle(holder))) continue;
    const directory = `${claims}/${holder}`;
    for (const id of (await namesIn(disk, directory)).filter(isId)) {
      const path = `${claims}/${own}/${id}`;
      if (box.inProgress.has(path)) continue;
      box.inProgress.add(path);
      try {
        if (holder !== own && !(await takeOver(disk, `${directory}/${id}`, path))) continue;
        if ((await isResting?.(path)) === true) continue;
        if (await settleClaim(adopting, new ClaimEntry(disk, path, box.isSynced), claims, completing)) count++;
      } catch (error) {
        // A claim that cannot be completed now must block neither the other claims nor the workers
        // of the box.
        if (isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "CLOSED")) throw error;
        const origin = await new ClaimEntry(disk, path, box.isSynced).findOrigin().catch(() => undefined);
        await onFailure?.(origin?.signal ?? origin?.files[0]?.name ?? id, path, error);
      } finally {
        box.inProgress.delete(path);
      }
    }
    if (holder !== own) await disk.rmdir(directory).catch(() => undefined);
  }
  return count;
}

interface RecoverOptions extends CompletionOptions {
  /** True for a claim that failed a moment ago. */
  readonly isResting?: ((path: string) => Promise<boolean>) | undefined;
  /** Called for each claim that cannot be completed now. */
  readonly onFailure?: ((name: string, path: string, error: unknown) => Promise<void>) | undefined;
}

async function takeOver(disk: ForeignFolder["disk"], from: string, to: string): Promise<boolean> {
  try {
    await disk.mkdir(parentOf(to));
  } catch (error) {
    if (!hasErrno(error, "EEXIST")) throw error;
  }
  return await moveOnce(disk, from, to);
}
