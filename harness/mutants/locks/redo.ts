// Known-wrong ways to apply a committed change: each lets a late process change what the next
// holder made.
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { removeTree } from "../../../src/durable/publish/directory.ts";
import type { TableState } from "../../../src/locks/table/request.ts";
import { findLeftovers } from "../../../src/locks/table/leftovers.ts";
import { LockTable } from "../../../src/locks/table/lock-table.ts";
import {
  doneDirectory,
  redoDirectory,
  targetOf,
  trashDirectory,
  type Redo,
  type RedoStep,
} from "../../../src/locks/redo/redo.ts";
import { brokenHolderScenarios, oldText } from "../../scenarios/locks/broken-holders.ts";
import type { LockScenarioOptions } from "../../scenarios/locks/lock-actors.ts";
import { redoScenarios } from "../../scenarios/locks/redo.ts";
import { staleRedoScenarios } from "../../scenarios/locks/stale-redo.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** Applies each step by `applyStep`, then marks the redo as done. Shared by the variants. */
abstract class OtherwiseApplied extends LockTable {
  protected override async apply(redo: Redo): Promise<void> {
    for (const [index, step] of redo.steps.entries()) await this.applyStep(step, this.directoryOf(redo, index));
    await this.markDone(redo);
  }

  protected abstract applyStep(step: RedoStep, directory: string): Promise<void>;

  /** In a flat redo, an `in` brings this itself. */
  protected directoryOf({ id, flat }: Redo, index: number): string {
    const directory = redoDirectory(this.redoFiles, id);
    return flat ? directory : `${directory}/${index}`;
  }

  protected async markDone({ id, flat }: Redo): Promise<void> {
    if (flat) return await removeTree(this.disk, redoDirectory(this.redoFiles, id));
    await renameIfThere(this.disk, redoDirectory(this.redoFiles, id), doneDirectory(this.redoFiles, id));
  }

  protected get disk(): Disk {
    return this.redoFiles.ports.disk;
  }

  protected target({ target }: RedoStep): string {
    return targetOf(this.redoFiles, target);
  }
}

/** R1: the record names the file to remove, which is unlinked if it exists. */
class RemovalByIdentity extends OtherwiseApplied {
  protected async applyStep(step: RedoStep): Promise<void> {
    const bytes = await this.disk.readFile(this.target(step), 100).catch(() => undefined);
    // The text stands for the inode number in a real record.
    if (bytes !== undefined && Buffer.from(bytes).toString() === oldText)
      await this.disk.unlink(this.target(step)).catch(() => undefined);
  }
}

/** R3: renames from name to name. */
class MoveByRename extends OtherwiseApplied {
  protected async applyStep(step: RedoStep): Promise<void> {
    if (step.kind === "move") await renameIfThere(this.disk, targetOf(this.redoFiles, step.source), this.target(step));
  }
}

/** Links a file to its target, then removes its first name. */
class LinkedIn extends OtherwiseApplied {
  protected async applyStep(step: RedoStep, staged: string): Promise<void> {
    const temp = `${trashDirectory(this.redoFiles)}/${staged.slice(-20)}`;
    await ignoring(this.disk.link(staged, temp), "ENOENT", "EEXIST");
    await renameIfThere(this.disk, temp, this.target(step));
  }
}

/** Takes a flat `in` for done once the file was renamed. */
class UnsyncedIn extends OtherwiseApplied {
  protected async applyStep(step: RedoStep, staged: string): Promise<void> {
    await renameIfThere(this.disk, staged, this.target(step));
  }
}

/** Checks for the author's record first, and then for its staged files. */
class RecordFirst extends LockTable {
  protected override async counts({ requests, redos }: TableState, id: string): Promise<boolean | undefined> {
    if (requests.some(({ change }) => change === id) || redos.some((redo) => redo.id === id)) return true;
    const [holder, isRedo] = id.split(".");
    if (holder === undefined || isRedo === undefined) return false;
    const { disk } = this.ground.ports;
    if (!(await disk.canOpen(this.ground.layout.record(holder)))) return undefined;
    return !(await disk.canOpen(redoDirectory(this.redoFiles, id)));
  }
}

/** R6: a directory that exists counts as created. */
class DirectoryByName extends OtherwiseApplied {
  protected async applyStep(step: RedoStep): Promise<void> {
    await this.disk.mkdir(this.target(step)).catch(() => undefined);
  }
}

/**
 * R2m: moves the target into the step's directory and from there to the trash, and counts that as
 * done.
 */
class EnteringTooSoon extends OtherwiseApplied {
  protected override async apply(redo: Redo): Promise<void> {
    for (const [index, step] of redo.steps.entries()) await this.applyStep(step, this.directoryOf(redo, index));
  }

  protected async applyStep(step: RedoStep, directory: string): Promise<void> {
    await renameIfThere(this.disk, this.target(step), `${directory}/out`);
    await renameIfThere(this.disk, `${directory}/out`, `${trashDirectory(this.redoFiles)}/${this.trashName()}`);
  }

  protected trashName(): string {
    return Buffer.from(this.redoFiles.ports.random.bytes(16)).toString("hex");
  }
}

/** R5m: applies all steps before it removes their directories. */
class StepsTooSoon extends EnteringTooSoon {
  protected override async apply(redo: Redo): Promise<void> {
    await super.apply(redo);
    const directory = redoDirectory(this.redoFiles, redo.id);
    // A file that arrived in such a directory since then moves to that directory's target.
    for (const [index, step] of redo.steps.entries())
      for (;;)
        try {
          await this.disk.rmdir(`${directory}/${index}`);
          break;
        } catch (error) {
          if (!hasErrno(error, "ENOTEMPTY")) break;
          await this.applyStep(step, `${directory}/${index}`);
        }
    await renameIfThere(this.disk, directory, doneDirectory(this.redoFiles, redo.id));
  }

  protected override async applyStep(step: RedoStep, directory: string): Promise<void> {
    if (step.kind === "in") await renameIfThere(this.disk, `${directory}/new`, this.target(step));
    else await super.applyStep(step, directory);
  }
}

/**
 * Trusts the reply to a rename or a removal: ENOENT or a stale handle means that another process
 * has done it.
 */
class TrustingAnswers extends OtherwiseApplied {
  protected async applyStep(step: RedoStep, directory: string): Promise<void> {
    const { disk } = this;
    switch (step.kind) {
      case "in":
        await renameIfThere(disk, `${directory}/new`, this.target(step));
        break;
      case "out":
        await renameIfThere(disk, this.target(step), `${directory}/out`);
        await renameIfThere(disk, `${directory}/out`, `${trashDirectory(this.redoFiles)}/${directory.slice(-20)}`);
        break;
      case "move":
        await renameIfThere(disk, targetOf(this.redoFiles, step.source), `${directory}/moved`);
        await renameIfThere(disk, `${directory}/moved`, this.target(step));
    }
    await ignoring(disk.rmdir(directory), "ENOENT", "ESTALE", "ENOTEMPTY");
  }
}

async function ignoring(change: Promise<void>, ...names: readonly string[]): Promise<void> {
  await change.catch((error: unknown) => {
    if (!hasErrno(error, ...names)) throw error;
  });
}

/** A disk that answers stats from the cache of its machine. */
function lookingByStat(disk: Disk): Disk {
  return new Proxy(disk, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property === "look" ? "stat" : property, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Removes the leftovers of dead holders unless the list names them. */
class SweepingByName extends LockTable {
  override async sweep(): Promise<void> {
    await this.ground.sweep();
    const standing = await this.judge((await this.read()).state.requests, { once: true });
    const leftovers = await findLeftovers(this.ground, standing);
    const entry = await this.append((table) => table);
    const named = new Set([...(entry?.state.requests ?? []), ...(entry?.state.redos ?? [])].map(({ id }) => id));
    for (const { id, path } of leftovers) if (!named.has(id)) await removeTree(this.ground.ports.disk, path);
  }
}

/** Commits without a sync, as grants are appended. */
class CommittingUnsynced extends LockTable {
  override async append(...[change, options]: Parameters<LockTable["append"]>): ReturnType<LockTable["append"]> {
    return await super.append(change, { ...options, sync: false });
  }
}

async function renameIfThere(disk: Disk, from: string, to: string): Promise<void> {
  await ignoring(disk.rename(from, to), "ENOENT", "ESTALE");
}

function mutant(name: string, about: string, TableClass: typeof LockTable, scenario: string, breaks: RegExp): Mutant {
  return {
    name: `redo: ${name}`,
    about,
    scenario: scenarioNamed(brokenHolderScenarios({ TableClass }), scenario),
    breaks,
  };
}

const removal = "broken: a removal and the next writer";

function staleMutant(
  name: string,
  about: string,
  options: LockScenarioOptions,
  scenario: string,
  breaks: RegExp,
): Mutant {
  return { name: `redo: ${name}`, about, scenario: scenarioNamed(staleRedoScenarios(options), scenario), breaks };
}

export const redoMutants: readonly Mutant[] = [
  mutant(
    "removal by comparing, then unlinking (R1)",
    "Between the two the next holder completes the removal and writes a new file.",
    RemovalByIdentity,
    removal,
    /what the next holder wrote is gone/,
  ),
  mutant(
    "entering before the step directory is gone (R2m)",
    "A late rename still finds a directory to move the next writer's file to.",
    EnteringTooSoon,
    removal,
    /what the next holder wrote is gone/,
  ),
  mutant(
    "a file that comes in under a second name",
    "A late rename puts it over what the next holder has written.",
    LinkedIn,
    "broken: a write and the next writer",
    /what the next holder wrote is gone/,
  ),
  mutant(
    "a commit judged by the author's record, and then by what it staged",
    "Between the two the author is swept: what it staged is gone, though it was never committed.",
    RecordFirst,
    "broken: a committer, collection and a sweep after it",
    /the commit of ada was acknowledged/,
  ),
  {
    name: "redo: a file that comes in without a sync",
    about: "A power cut reverts an acknowledged change.",
    scenario: scenarioNamed(redoScenarios({ TableClass: UnsyncedIn }), "redo: a counter and power cuts (journal)"),
    breaks: /the count is 0, and 1 were acknowledged/,
  },
  mutant(
    "move by rename from name to name (R3)",
    "A late rename moves what the next holder has written under the old name.",
    MoveByRename,
    "broken: a move and the next writer",
    /what the next holder wrote was moved away/,
  ),
  mutant(
    "next step before the step directory is gone (R5m)",
    "A late rename of the first step takes away what the second one has put there.",
    StepsTooSoon,
    "broken: a replacement in two steps",
    /what was committed is lost/,
  ),
  mutant(
    "sweeping what is staged and not named in the list",
    "Its maker was declared dead after all holders were judged, and still has a request: it commits what is gone.",
    SweepingByName,
    "broken: a committer that is declared dead, and a sweep",
    /the commit of ada was acknowledged/,
  ),
  mutant(
    "directory made by name (R6)",
    "Made late, it comes back after the next holder has removed it.",
    DirectoryByName,
    "broken: a new directory and its remover",
    /came back/,
  ),
  {
    name: "redo: a commit that is not synced",
    about: "A power cut loses the commit after the first rename of a move, and the file is swept.",
    scenario: scenarioNamed(
      redoScenarios({ TableClass: CommittingUnsynced }),
      "redo: a move and power cuts (ext4-ordered)",
    ),
    breaks: /it is in ,/,
  },
  {
    name: "redo: a commit that is not synced, and its reader",
    about: "A reader sees a change that a power cut reverts.",
    scenario: scenarioNamed(
      redoScenarios({ TableClass: CommittingUnsynced }),
      "redo: a reader without a lock, and power cuts",
    ),
    breaks: /what a reader has seen is gone/,
  },
  staleMutant(
    "a stale handle taken for done by another",
    "ESTALE says nothing about the name: the commit happens in part, and is reported as done.",
    { TableClass: TrustingAnswers },
    "redo: handles are stale anywhere in a commit",
    /part of it is not|it is half done/,
  ),
  staleMutant(
    "an absence taken for done by another",
    "The machine remembers that nothing was there, and says so without asking.",
    { TableClass: TrustingAnswers },
    "redo: a machine that remembers that nothing was there completes a removal",
    /it was taken for done, and a is there/,
  ),
  staleMutant(
    "looks by stat at what comes",
    "A directory that another machine has just made is taken for nothing: the change can never be done.",
    { diskOf: lookingByStat },
    "redo: a directory comes to where another machine has just made one",
    /it was told RESOURCE_BUSY/,
  ),
  staleMutant(
    "looks by stat at what goes",
    "A directory that another machine has just made is taken for nothing, and goes under an exact lock.",
    { diskOf: lookingByStat },
    "redo: a removal under an exact lock of what another machine has made a directory",
    /it was told (done|OUTCOME_UNKNOWN|RESOURCE_BUSY)/,
  ),
];
