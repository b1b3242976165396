// Sidecars: `.abstract.md` and `.overview.md` of a directory, made by the user's function from what is in it.
import { workUnder, type PathHold } from "../../locks/path/path-hold.ts";
import { hashOf } from "../documents/layout.ts";
import type { FileOperations } from "../model/file-tree.ts";
import { summaryTag } from "../tree/layout.ts";
import type { SummaryTask } from "../queue/task.ts";
import type { LockWaits } from "../queue/lock-waits.ts";
import type { TaskQueue } from "../queue/task-queue.ts";
import type { Summary, UserFunctions } from "../queue/user-functions.ts";
import type { TreePlace } from "../tree/tree-place.ts";
import { abstractName, isSidecarName, overviewName } from "./sidecar-name.ts";
import { SidecarVersion } from "./sidecar-version.ts";

export interface SidecarsParts {
  readonly place: TreePlace;
  readonly queue: TaskQueue;
  readonly functions: UserFunctions;
  readonly waits: LockWaits;
  /** Of the tree. */
  readonly operations: () => Pick<FileOperations, "write">;
  /** Known-wrong variants, for tests. */
  readonly VersionClass?: typeof SidecarVersion | undefined;
}

export class Sidecars {
  readonly #parts: SidecarsParts;

  constructor(parts: SidecarsParts) {
    this.#parts = parts;
  }

  /** Asks for the sidecars of these directories as they are now. Nothing, if this process has no function for it. */
  async request(directories: Iterable<string>): Promise<void> {
    const { queue, functions, place } = this.#parts;
    if (!functions.has("summarize")) return;
    for (const directory of directories) {
      if ((await place.findLook(directory))?.kind !== "directory") continue;
      const version = await (await this.#versionsOf(directory)).want();
      // Also for a version that waits: the process that asked for it may have died before it made the ticket.
      await queue.publish({ task: "summary", directory, version });
    }
  }

  /** What came of it. No lock is held while the user's function runs. */
  async write({ directory, version }: SummaryTask, signal: AbortSignal): Promise<"written" | "replaced" | "gone"> {
    const { functions, waits } = this.#parts;
    const locks = await this.#parts.place.locks();
    const paths = [abstractName, overviewName].map((name) => below(directory, name));
    const acquire = (timeoutMs: number): Promise<PathHold> =>
      locks.acquireAll(paths, { timeoutMs, signal, tag: summaryTag });
    // Before the function, which may be costly: it is not to be called for what cannot be written for now.
    await (await waits.get(acquire)).release();
    const versions = await this.#versionsOf(directory);
    if (!(await versions.start(version))) return "replaced";
    const entries = await this.#findEntries(directory);
    if (entries === undefined) return "gone";
    const summary = await functions.summarize(directory, entries, signal);
    return await workUnder(await waits.get(acquire), async (hold) => {
      // A removal of the directory waits for this lock, or was before it: then nothing may come back.
      if ((await this.#findEntries(directory)) === undefined) return "gone";
      if (!(await versions.begin(version))) return "replaced";
      await this.#write(directory, summary, hold);
      return "written";
    });
  }

  async #write(directory: string, { abstract, overview }: Summary, within: PathHold): Promise<void> {
    const tree = this.#parts.operations();
    await tree.write(below(directory, abstractName), abstract, { within });
    await tree.write(below(directory, overviewName), overview, { within });
  }

  /** Names, in order; undefined when there is no such directory. */
  async #findEntries(directory: string): Promise<string[] | undefined> {
    const { place } = this.#parts;
    if ((await place.findLook(directory))?.kind !== "directory") return undefined;
    const names = await place.disk.list(place.pathOf(directory));
    return names.filter((name) => place.isShown(name) && !isSidecarName(name)).sort();
  }

  async #versionsOf(directory: string): Promise<SidecarVersion> {
    const { place, VersionClass = SidecarVersion } = this.#parts;
    const { ground, layout } = place;
    const path = `${layout.directory}/sidecars/${hashOf(directory)}`;
    return await VersionClass.open(ground.staging, path, ground.ports.host.bootId);
  }
}

function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
