// The processes of file scenarios: how they open the tree, which errors they accept, and how the audit reads a tree.
import { Ground } from "../../../src/durable/liveness/ground.ts";
import { isHoldfastError } from "../../../src/errors.ts";
import { FolderFiles } from "../../../src/files/files.ts";
import type { Change } from "../../../src/files/model/file-tree.ts";
import { FilesLayout } from "../../../src/files/tree/layout.ts";
import type { OpenedTree } from "../../../src/files/tree/open-tree.ts";
import { Tree } from "../../../src/files/tree/tree.ts";
import { TablePathLocks } from "../../../src/locks/path/table-path-locks.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { durabilityTouch } from "../../../src/testing/sim/call.ts";
import { actor, type Actor, type ActorContext, type Scenario } from "../../../src/testing/explorer/scenario.ts";

export const ground = "/ground";
export const root = "/tree";
export const staged = "/staged";
/** The lease of actors that may sleep past it. */
export const shortLeaseMs = 400;
export const longLeaseMs: number = 100 * shortLeaseMs;

/** The options of file scenarios, which run on the real operations or on known-wrong variants. */
export interface FileScenarioOptions {
  /** Wraps the tree that the operations work on. Default: no change. */
  readonly treeOf?: ((tree: Tree) => Tree) | undefined;
  /** Default: so long that no process is declared dead for silence. */
  readonly leaseMs?: number | undefined;
}

/** Paths are used as keys unchanged: these scenarios do not test the mapping. */
const plainKeys = {
  clean: (path: string) => path,
  locate: async (path: string) => ({ path, key: path }),
  keyOf: async (path: string) => path,
};

export interface OpenFiles {
  readonly files: FolderFiles;
  readonly tree: Tree;
}

export async function openSimulatedTree(ports: Ports, leaseMs: number = longLeaseMs): Promise<OpenedTree> {
  const joined = await Ground.open(ports, ground, { leaseMs });
  const locks = await TablePathLocks.open(joined, { root, keys: plainKeys, ownsGround: true });
  const tree = await Tree.open(locks);
  return { tree, close: () => locks.close() };
}

export async function openFiles(ports: Ports, options: FileScenarioOptions = {}): Promise<OpenFiles> {
  const { leaseMs, treeOf = (tree) => tree } = options;
  const opened = await openSimulatedTree(ports, leaseMs);
  // Locks do not wait: an actor that is refused retries when the explorer lets it.
  return { tree: opened.tree, files: new FolderFiles({ ...opened, tree: treeOf(opened.tree) }, { timeoutMs: 0 }) };
}

/** Opens the tree before the scenario begins. */
export function worker(
  options: FileScenarioOptions,
  run: (context: ActorContext, opened: OpenFiles) => Promise<unknown>,
): Actor {
  return actor({
    prepare: ({ ports }) => openFiles(ports, options),
    run: async (context, opened) => void (await run(context, opened)),
  });
}

/** Runs the work once, and notes success or the error. Returns true on success. */
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

/** Retries a few times, each time after the lease of a sleeper. */
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

/** Returns every file below `path` with its text, and every directory with a slash. */
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

/** Returns the tree and the change log as the next process finds them. That process completes all committed changes. */
export async function audited(ports: Ports): Promise<{ texts: Record<string, string>; changes: Change[] }> {
  const { tree } = await openFiles(ports);
  return { texts: await textsBelow(ports.disk, root), changes: await tree.changes.readAfter(0) };
}

/** The troubles that may strike actors, as far as others check the files they leave. */
type Troubles = Pick<Scenario, "killsMax" | "pauses" | "beatsMax">;

/**
 * Only its maker knows a hold file until it is linked, a staged change until it is committed, and any file in a temp
 * directory. Where no process dies, each applies its own changes: none checks those of another.
 */
export function isUnseen(operation: string, path: string, { killsMax = 0, pauses, beatsMax }: Troubles): boolean {
  const holdersChange = pauses !== undefined || beatsMax !== undefined;
  if (path.startsWith(`${ground}/holders/`)) return !holdersChange;
  // Removed files are garbage, and no process waits for their deletion. Where the power is cut, every step is seen.
  if (/^\/(ground\/(temp|trash)|staged)(\/|$)/.test(path) || path === durabilityTouch) return true;
  if (/^\/ground\/(redo|done)(\/|$)/.test(path) && killsMax === 0 && !holdersChange) return true;
  const isMaking = ["create", "write", "mkdir", "sync", "sync directory", "open", "link"].includes(operation);
  return isMaking && /^\/ground\/(holds|redo)\/./.test(path);
}

/** Only the existence of a permanent directory is asked for. No answer depends on anything else about it. */
export function isKnown(operation: string, path: string, isPermanent: (path: string) => boolean): boolean {
  // There is one block of changes in every scenario.
  if (operation === "list") return path === `${ground}/files/changes`;
  return ["mkdir", "stat", "look", "resolve"].includes(operation) && isPermanent(path);
}

/** Adds what every scenario of files shares. `files` are in the tree, `incoming` in the staged directory. */
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
