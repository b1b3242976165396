// Sidecars: `.abstract.md` and `.overview.md` of a directory, made by the user's function from its
// content.
import { isHoldfastError } from "../../errors.ts";
import { workUnder, type PathHold } from "../../locks/path/path-hold.ts";
import { hashOf } from "../documents/layout.ts";
import { summaryTag } from "../tree/layout.ts";
import type { TaskContext } from "../queue/task-context.ts";
import type { SummaryTask } from "../queue/task.ts";
import type { WaitOptions } from "../queue/lock-waits.ts";
import type { Summary } from "../queue/user-functions.ts";
import type { Tree } from "../tree/tree.ts";
import { resetIfDamaged } from "../tree/damaged-record.ts";
import { abstractName, isSidecarName, overviewName } from "./sidecar-name.ts";
import { SidecarVersion } from "./sidecar-version.ts";

export class Sidecars {
  readonly #context: Omit<TaskContext, "sidecars">;
  readonly #tree: Tree;
  readonly #VersionClass: typeof SidecarVersion;

  constructor(context: Omit<TaskContext, "sidecars">, VersionClass: typeof SidecarVersion = SidecarVersion) {
    this.#context = context;
    this.#tree = context.derived.tree;
    this.#VersionClass = VersionClass;
  }

  /**
   * Requests the sidecars of these directories as they are now. Does nothing if this process has no
   * function for it.
   */
  async request(directories: Iterable<string>): Promise<void> {
    const { functions } = this.#context;
    const tree = this.#tree;
    if (!functions.has("summarize")) return;
    for (const directory of directories)
      try {
        if ((await tree.findLook(directory))?.kind === "directory") await this.#request(directory);
      } catch (error) {
        // Sidecars of a newer release are left to that release, and block no index.
        if (!isHoldfastError(error, "NEWER_FORMAT")) throw error;
        tree.ground.ports.host.warn(`${directory === "" ? tree.root : directory} gets no summary. ${error.message}`);
      }
  }

  async #request(directory: string): Promise<void> {
    const wanted = await this.#inVersions(directory, (versions) => versions.want());
    // Published even for a pending version: the process that requested it may have died before it
    // published the ticket.
    await this.#context.queue.publish({ task: "summary", directory, ...wanted });
  }

  /**
   * Writes the sidecars, and returns the result. No lock is held while the user's function runs.
   */
  async write(
    { directory, version }: SummaryTask,
    signal: AbortSignal,
    options: WaitOptions = {},
  ): Promise<"written" | "replaced" | "gone"> {
    const { functions, waits } = this.#context;
    const { locks } = this.#tree;
    const paths = [abstractName, overviewName].map((name) => below(directory, name));
    const acquire = (timeoutMs: number): Promise<PathHold> =>
      locks.acquireAll(paths, { timeoutMs, signal, tag: summaryTag });
    // Acquired before the function runs, which may be costly: it must not run if the result cannot
    // be written now.
    await (await waits.get(acquire, options)).release();
    const versions = await this.#inVersions(directory, async (each) =>
      (await each.start(version)) ? each : undefined,
    );
    if (versions === undefined) return "replaced";
    const entries = await this.#findEntries(directory);
    if (entries === undefined) return "gone";
    const summary = await functions.summarize(directory, entries, signal);
    return await workUnder(await waits.get(acquire, options), async (hold) => {
      // A removal of the directory waits for this lock or has already happened. In the second case
      // nothing may reappear.
      if ((await this.#findEntries(directory)) === undefined) return "gone";
      if (!(await versions.begin(version))) return "replaced";
      await this.#write(directory, summary, hold);
      return "written";
    });
  }

  /** True if a later version was requested, or if the directory no longer exists. */
  async isReplaced({ directory, version }: SummaryTask): Promise<boolean> {
    if ((await this.#tree.findLook(directory))?.kind !== "directory") return true;
    return await this.#inVersions(directory, (versions) => versions.isReplaced(version));
  }

  async #write(directory: string, { abstract, overview }: Summary, within: PathHold): Promise<void> {
    const tree = this.#context.operations();
    await tree.write(below(directory, abstractName), abstract, { within });
    await tree.write(below(directory, overviewName), overview, { within });
  }

  /** Returns the names in order; undefined if there is no such directory. */
  async #findEntries(directory: string): Promise<string[] | undefined> {
    const tree = this.#tree;
    if ((await tree.findLook(directory))?.kind !== "directory") return undefined;
    const names = await tree.disk.list(tree.pathOf(directory));
    return names.filter((name) => tree.isShown(name) && !isSidecarName(name)).sort();
  }

  /** Runs `work` on the versions. Unreadable versions start over: an extra summary does no harm. */
  async #inVersions<T>(directory: string, work: (versions: SidecarVersion) => Promise<T>): Promise<T> {
    const { ground, layout } = this.#tree;
    const path = `${layout.directory}/sidecars/${hashOf(directory)}`;
    return await resetIfDamaged(this.#tree, path, async () =>
      work(await this.#VersionClass.open(ground.staging, path, ground.ports.host.bootId)),
    );
  }
}

function below(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
