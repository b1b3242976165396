// The processes of file scenarios: what they open, what they are told instead of success, and what a tree looks like.
import { Ground } from "../../../durable/liveness/ground.ts";
import { isHoldfastError } from "../../../errors.ts";
import { FolderFiles, type FolderFilesOptions } from "../../../files/files.ts";
import type { Change } from "../../../files/model/file-tree.ts";
import { FilesLayout } from "../../../files/tree/layout.ts";
import type { OpenedTree } from "../../../files/tree/open-tree.ts";
import { TreePlace } from "../../../files/tree/tree-place.ts";
import { TablePathLocks } from "../../../locks/path/table-path-locks.ts";
import { hasErrno } from "../../../ports/disk-error.ts";
import type { Disk } from "../../../ports/disk.ts";
import type { Ports } from "../../../ports/ports.ts";
import { durabilityTouch } from "../../sim/call.ts";
import { actor, type Actor, type ActorContext, type Scenario } from "../../explorer/scenario.ts";

export const ground = "/ground";
export const root = "/tree";
export const staged = "/staged";
/** Of actors that may sleep past it. */
export const shortLeaseMs = 400;
export const longLeaseMs: number = 100 * shortLeaseMs;

/** The scenarios run on the real operations, or on known-wrong variants. */
export interface FileScenarioOptions extends Pick<FolderFilesOptions, "WorkClass" | "StagedClass"> {
  /** Default: so long that no process dies of silence. */
  readonly leaseMs?: number | undefined;
}

/** Paths are keys: how one becomes the other is not what these scenarios are about. */
const plainKeys = {
  clean: (path: string) => path,
  locate: async (path: string) => ({ path, key: path }),
  keyOf: async (path: string) => path,
};

export interface OpenFiles {
  readonly files: FolderFiles;
  readonly place: TreePlace;
}

export async function openPlace(ports: Ports, leaseMs: number = longLeaseMs): Promise<OpenedTree> {
  const joined = await Ground.open(ports, ground, { leaseMs });
  const locks = await TablePathLocks.open(joined, { root, keys: plainKeys, ownsGround: true });
  const place = await TreePlace.open({ root, ground: joined, locks: async () => locks, keys: plainKeys });
  return { place, close: () => locks.close() };
}

export async function openFiles(ports: Ports, options: FileScenarioOptions = {}): Promise<OpenFiles> {
  const { leaseMs, ...variants } = options;
  const opened = await openPlace(ports, leaseMs);
  // Without waiting: an actor that is refused tries again when the explorer lets it.
  return { place: opened.place, files: new FolderFiles(opened, { timeoutMs: 0, ...variants }) };
}

/** An actor that has opened the tree before the scenario begins. */
export function worker(
  options: FileScenarioOptions,
  run: (context: ActorContext, opened: OpenFiles) => Promise<unknown>,
): Actor {
  return actor({
    prepare: ({ ports }) => openFiles(ports, options),
    run: async (context, opened) => void (await run(context, opened)),
  });
}

/** Does it once, and notes that it was done or what it was told instead. True when it was done. */
export async function once({ note }: ActorContext, what: string, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    note(what);
    return true;
  } catch (error) {
    if (!isHoldfastError(error, "RESOURCE_BUSY", "LOCK_LOST", "NO_SUCH_FILE", "OUTCOME_UNKNOWN")) throw error;
    note("told", error.code);
    return false;
  }
}

/** Tries again and again, each time after the lease of a sleeper. */
export async function patiently(context: ActorContext, what: string, work: () => Promise<unknown>): Promise<void> {
  for (let attempt = 0; attempt < 6; attempt++) {
    try {
      await work();
      return context.note(what);
    } catch (error) {
      if (!isHoldfastError(error, "RESOURCE_BUSY")) throw error;
    }
    await context.ports.clock.sleep(shortLeaseMs);
  }
  context.note("gave up");
}

/** Every file below `path` with its text, and every directory with a slash. */
export async function textsBelow(disk: Disk, path: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const walk = async (at: string): Promise<void> => {
    for (const name of await namesIn(disk, `${path}${at}`)) {
      const below = `${at}/${name}`;
      if ((await disk.stat(`${path}${below}`)).kind === "file")
        found[below.slice(1)] = Buffer.from(await disk.readFile(`${path}${below}`, 1000)).toString();
      else await walk(below);
    }
  };
  await walk("");
  return found;
}

async function namesIn(disk: Disk, path: string): Promise<string[]> {
  try {
    return (await disk.list(path)).sort();
  } catch (error) {
    if (hasErrno(error, "ENOENT")) return [];
    throw error;
  }
}

/** What the next process finds, which completes what is committed: the tree, and the change log. */
export async function audited(ports: Ports): Promise<{ texts: Record<string, string>; changes: Change[] }> {
  const { place } = await openFiles(ports);
  return { texts: await textsBelow(ports.disk, root), changes: await place.changes.readAfter(0) };
}

/** What may happen to the actors of a scenario, as far as others look at what they have left. */
type Troubles = Pick<Scenario, "killsMax" | "pauses" | "beatsMax">;

/**
 * Only its maker knows a hold file until it is linked, a staged change until it is committed, and a file in a temp
 * directory for ever. Where no process dies, each applies its own changes: none looks at those of another.
 */
export function isUnseen(operation: string, path: string, { killsMax = 0, pauses, beatsMax }: Troubles): boolean {
  const holdersChange = pauses !== undefined || beatsMax !== undefined;
  if (path.startsWith(`${ground}/holders/`)) return !holdersChange;
  if (/^\/(ground\/temp|staged)(\/|$)/.test(path)) return true;
  // Where the power is cut, no step is unseen.
  if (path === durabilityTouch) return !holdersChange;
  // What is applied is garbage, and no process waits for its removal.
  if (/^\/ground\/(redo|done|trash)(\/|$)/.test(path) && killsMax === 0 && !holdersChange) return true;
  const isMaking = ["create", "write", "mkdir", "sync", "sync directory", "open", "link"].includes(operation);
  return isMaking && /^\/ground\/(holds|redo)\/./.test(path);
}

/** That a directory which stays is there: no answer depends on anything else of it. */
export function isKnown(operation: string, path: string, isPermanent: (path: string) => boolean): boolean {
  // There is one block of changes in every scenario.
  if (operation === "list") return path === `${ground}/files/changes`;
  return ["mkdir", "stat", "look", "resolve"].includes(operation) && isPermanent(path);
}

/** What every scenario of files shares. `files` are in the tree, `incoming` in the staged directory. */
export function fileScenario(
  scenario: Pick<Scenario, "name" | "about" | "actors"> & Partial<Scenario>,
  files: Readonly<Record<string, string>> = {},
  incoming: Readonly<Record<string, string>> = {},
): Scenario {
  const hearts = scenario.beatsMax !== undefined;
  const sleeps = scenario.pauses !== undefined;
  const isPermanent = (path: string): boolean =>
    [ground, root, `${ground}/table`, `${ground}/files`].includes(path) ||
    path.startsWith(`${ground}/files/`) ||
    path.startsWith(`${ground}/names`) ||
    (path.startsWith(`${ground}/holders/`) && !sleeps && (path.endsWith(".json") || !hearts)) ||
    `${path}/`.startsWith(`${ground}/table/`);
  return {
    setup: async ({ disk }) => {
      await disk.mkdir(ground);
      await disk.mkdir(root);
      await fill(disk, root, files);
      if (Object.keys(incoming).length > 0) {
        await disk.mkdir(staged);
        await fill(disk, staged, incoming);
      }
      const layout = new FilesLayout(ground);
      for (const path of [layout.directory, layout.changes, layout.changeBlock(1)]) await disk.mkdir(path);
    },
    isPermanent,
    isUnseen: (operation, path) => isKnown(operation, path, isPermanent) || isUnseen(operation, path, scenario),
    ...scenario,
  };
}

export async function fill(disk: Disk, directory: string, files: Readonly<Record<string, string>>): Promise<void> {
  const made = new Set<string>();
  for (const [path, text] of Object.entries(files)) {
    const names = path.split("/");
    for (let depth = 1; depth < names.length; depth++) {
      const at = `${directory}/${names.slice(0, depth).join("/")}`;
      if (!made.has(at)) await disk.mkdir(at);
      made.add(at);
    }
    await disk.createFile(`${directory}/${path}`, Buffer.from(text), { sync: true });
  }
}
