// Known-wrong ways to apply a committed change: each lets a process that comes late touch what the
// next holder made.
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk } from "../../../ports/disk.ts";
import { removeTree } from "../../../durable/publish/directory.ts";
import { findLeftovers } from "../../../locks/table/leftovers.ts";
import { LockTable } from "../../../locks/table/lock-table.ts";
import { doneDirectory, redoDirectory, targetOf, trashDirectory } from "../../../locks/redo/paths.ts";
import type { Redo, RedoStep } from "../../../locks/redo/record.ts";
import { brokenHolderScenarios, oldText } from "../../scenarios/locks/broken-holders.ts";
import type { LockScenarioOptions } from "../../scenarios/locks/lock-actors.ts";
import { redoScenarios } from "../../scenarios/locks/redo.ts";
import { staleRedoScenarios } from "../../scenarios/locks/stale-redo.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/**
 * Applies each step by `applyStep`, then marks the redo as done: the common part of the variants.
 */
abstract class OtherwiseApplied extends LockTable {
  protected override async apply(redo: Redo): Promise<void> {
    const directory = redoDirectory(this.place, redo.id);
    for (const [index, step] of redo.steps.entries()) await this.applyStep(step, `${directory}/${index}`);
    await renameIfThere(this.disk, directory, doneDirectory(this.place, redo.id));
  }

  protected abstract applyStep(step: RedoStep, directory: string): Promise<void>;

  protected get disk(): Disk {
    return this.place.ports.disk;
  }

  protected target({ target }: RedoStep): string {
    return targetOf(this.place, target);
  }
}

/** R1: the record says which file to remove; if that file is there, it is unlinked. */
class RemovalByIdentity extends OtherwiseApplied {
  protected async applyStep(step: RedoStep): Promise<void> {
    const bytes = await this.disk.readFile(this.target(step), 100).catch(() => undefined);
    // The text stands for the inode number that a record would have.
    if (bytes !== undefined && Buffer.from(bytes).toString() === oldText)
      await this.disk.unlink(this.target(step)).catch(() => undefined);
  }
}

/** R3: renames from name to name. */
class MoveByRename extends OtherwiseApplied {
  protected async applyStep(step: RedoStep): Promise<void> {
    if (step.kind === "move") await renameIfThere(this.disk, targetOf(this.place, step.source), this.target(step));
  }
}

/** R6: a directory that exists counts as made. */
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
    for (const [index, step] of redo.steps.entries())
      await this.applyStep(step, `${redoDirectory(this.place, redo.id)}/${index}`);
  }

  protected async applyStep(step: RedoStep, directory: string): Promise<void> {
    await renameIfThere(this.disk, this.target(step), `${directory}/out`);
    await renameIfThere(this.disk, `${directory}/out`, `${trashDirectory(this.place)}/${this.trashName()}`);
  }

  protected trashName(): string {
    return Buffer.from(this.place.ports.random.bytes(16)).toString("hex");
  }
}

/** R5m: does all steps before it removes their directories. */
class StepsTooSoon extends EnteringTooSoon {
  protected override async apply(redo: Redo): Promise<void> {
    await super.apply(redo);
    const directory = redoDirectory(this.place, redo.id);
    // What came into one since goes where it would have gone.
    for (const [index, step] of redo.steps.entries())
      for (;;)
        try {
          await this.disk.rmdir(`${directory}/${index}`);
          break;
        } catch (error) {
          if (!hasErrno(error, "ENOTEMPTY")) break;
          await this.applyStep(step, `${directory}/${index}`);
        }
    await renameIfThere(this.disk, directory, doneDirectory(this.place, redo.id));
  }

  protected override async applyStep(step: RedoStep, directory: string): Promise<void> {
    if (step.kind === "in") await renameIfThere(this.disk, `${directory}/new`, this.target(step));
    else await super.applyStep(step, directory);
  }
}

/**
 * Takes the answer of a rename or a removal for what has happened: absent, or a stale handle, means
 * that another process has done it.
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
        await renameIfThere(disk, `${directory}/out`, `${trashDirectory(this.place)}/${directory.slice(-20)}`);
        break;
      case "move":
        await renameIfThere(disk, targetOf(this.place, step.source), `${directory}/moved`);
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

/** A disk whose looks are answered from the cache of its machine. */
function lookingByStat(disk: Disk): Disk {
  return new Proxy(disk, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property === "look" ? "stat" : property, target);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

/** Removes what dead holders have left unless the list names it. */
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

/** Commits as it grants: nothing is synced. */
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
    about: "A power cut takes the commit after the first rename of a move, and the file is swept.",
    scenario: scenarioNamed(
      redoScenarios({ TableClass: CommittingUnsynced }),
      "redo: a move and power cuts (ext4-ordered)",
    ),
    breaks: /it is in ,/,
  },
  {
    name: "redo: a commit that is not synced, and its reader",
    about: "A reader sees what a power cut takes back.",
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
