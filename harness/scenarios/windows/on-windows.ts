// Scenarios on Windows: the quirks of its file systems, the waits of this package, and a virus
// scanner that opens files without sharing them.
import { WindowsRules, type WindowsLooks } from "../../../src/ports/node/windows/windows-calls.ts";
import { toDiskError } from "../../../src/ports/node/disk/errno.ts";
import { errnoOf, findIfThere } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import type { Ports } from "../../../src/ports/ports.ts";
import { actor, type Actor, type ActorContext, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { windowsQuirks } from "../../../src/testing/sim/simulation.ts";

/** What a known-wrong variant leaves out. */
export interface WindowsWay {
  /** False for a call that is made without the rules of Windows. Default: true for all. */
  readonly isRuled?: ((operation: string, path: string, disk: Disk) => boolean | Promise<boolean>) | undefined;
  /** False: a refused rename is never looked into. Default true. */
  readonly explainsRenames?: boolean | undefined;
}

const scannerName = "scanner";

/**
 * Returns `scenario` on Windows, with one more actor: it opens each file that `find` returns, and
 * closes it.
 */
export function onWindows(
  scenario: Scenario,
  {
    find,
    way = {},
  }: { readonly find: (disk: Disk) => Promise<readonly string[]>; readonly way?: WindowsWay | undefined },
): Scenario {
  const actors = Object.entries(scenario.actors).map(([name, each]) => [name, ruled(each, way)] as const);
  return {
    ...scenario,
    quirks: { ...scenario.quirks, ...windowsQuirks, unshared: [scannerName] },
    actors: { ...Object.fromEntries(actors), [scannerName]: scanner(find) },
  };
}

/** Returns the paths of the files in `directory` and below it. */
export async function filesBelow(disk: Disk, directory: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await disk.list(directory).catch((): string[] => [])) {
    const path = `${directory}/${name}`;
    const kind = (await disk.findStat(path).catch(() => undefined))?.kind;
    if (kind === "file") found.push(path);
    if (kind === "directory") found.push(...(await filesBelow(disk, path)));
  }
  return found;
}

function scanner(find: (disk: Disk) => Promise<readonly string[]>): Actor {
  return {
    run: async ({ ports: { disk } }) => {
      for (const path of await find(disk)) {
        // It may be gone, or in use.
        const file = await disk.open(path, "read").catch(() => undefined);
        await file?.close();
      }
    },
  };
}

function ruled(each: Actor, way: WindowsWay): Actor {
  const onRules = (context: ActorContext): ActorContext => ({
    ...context,
    ports: { ...context.ports, disk: windowsDisk(context.ports, way) },
  });
  const { prepare } = each;
  return actor({
    ...each,
    ...(prepare === undefined ? {} : { prepare: (context: ActorContext) => prepare(onRules(context)) }),
    run: (context, state) => each.run(onRules(context), state),
  });
}

/** The disk of `ports` as this package uses one on Windows. */
function windowsDisk({ disk, clock }: Ports, { isRuled = () => true, explainsRenames = true }: WindowsWay): Disk {
  const rules = new WindowsRules(looksOf(disk), { isShare: false, wait: (ms) => clock.sleep(ms) });
  type Call = Parameters<WindowsRules["run"]>[0];
  type Explain = Parameters<WindowsRules["run"]>[2];
  const run = async <T>(call: Call, action: () => Promise<T>, explain?: Explain): Promise<T> => {
    if (!(await isRuled(call.operation, call.from ?? call.path, disk))) return await action();
    try {
      return await rules.run(call, () => asOfNode(action()), explain);
    } catch (error) {
      throw toDiskError(error, call.operation, call.path);
    }
  };
  const ofDirectory = (operation: string, path: string): Call => ({ operation, path, isOfDirectory: true });
  const stat: Disk["stat"] = (path) => run({ operation: "stat", path }, () => disk.stat(path));
  return {
    volume: disk.volume,
    stat,
    findStat: (path) => findIfThere(stat(path)),
    look: (path) => run({ operation: "look at", path }, () => disk.look(path)),
    canOpen: (path) => run({ operation: "open", path }, () => disk.canOpen(path)),
    readFile: (path, bytesMax) => run({ operation: "read", path }, () => disk.readFile(path, bytesMax)),
    open: (path, mode, options) =>
      run(
        { operation: "open", path },
        () => disk.open(path, mode, options),
        mode === "create" ? rules.making(path) : undefined,
      ),
    createFile: (path, bytes, options) =>
      run({ operation: "create", path }, () => disk.createFile(path, bytes, options), rules.making(path)),
    link: (from, path) => run({ operation: "link", path, from }, () => disk.link(from, path), rules.making(path)),
    rename: async (from, path) => {
      const call = { operation: "rename", path, from };
      if (!explainsRenames || !(await isRuled(call.operation, from, disk)))
        return await run(call, () => disk.rename(from, path));
      try {
        await rules.rename(from, path, () => asOfNode(disk.rename(from, path)));
      } catch (error) {
        throw toDiskError(error, call.operation, path);
      }
    },
    unlink: (path) => run({ operation: "unlink", path }, () => disk.unlink(path), rules.unlinking(path)),
    mkdir: (path) => run({ operation: "mkdir", path }, () => disk.mkdir(path), rules.making(path)),
    rmdir: (path) => run(ofDirectory("rmdir", path), () => disk.rmdir(path)),
    list: (path) => run(ofDirectory("list", path), () => disk.list(path)),
    listSome: (path, count) => run(ofDirectory("list", path), () => disk.listSome(path, count)),
    realPath: (path) => disk.realPath(path),
    hasLink: (root, path) => disk.hasLink(root, path),
    readLink: (path) => disk.readLink(path),
    syncDirectory: (path) => disk.syncDirectory(path),
  };
}

function looksOf(disk: Disk): WindowsLooks {
  const find = async (path: string): Promise<{ isDirectory(): boolean }> => {
    const { kind } = await asOfNode(disk.stat(path));
    return { isDirectory: () => kind === "directory" };
  };
  return {
    stat: find,
    lstat: find,
    listSome: (path, count) => asOfNode(disk.listSome(path, count)),
    rmdir: (path) => asOfNode(disk.rmdir(path)),
  };
}

/** Turns an error of the simulated disk into one as Node has it. */
async function asOfNode<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (cause) {
    const code = errnoOf(cause);
    throw code === undefined ? cause : Object.assign(new Error(code, { cause }), { code });
  }
}
