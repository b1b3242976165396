// What is decided once for the path locks of a ground: the tree that they lock, and how names are
// compared in it.
import { posix } from "node:path";
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import { discard, stage, type Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { flagOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import type { RecordKind } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";

export interface LockNames {
  readonly id: string;
  readonly caseSensitive: boolean;
  /**
   * The root of the tree, relative to the directory of the ground: a share has another path on each
   * machine.
   */
  readonly root: string;
}

/**
 * The names of the ground in `directory`, for the tree at `root`. With two answers, two processes
 * would have two keys for one file, or complete each other's redos in two trees: WRONG_STORE when
 * the ground belongs to another tree.
 */
export async function decideNames(staging: Staging, directory: string, root: string): Promise<LockNames> {
  const { disk } = staging;
  const path = namesPath(directory);
  const relative = posix.relative(await disk.realPath(directory), await disk.realPath(root));
  const decided =
    (await findDecision(disk, namesKind, path)) ??
    (await decideRecord(staging, namesKind, path, {
      id: randomName(staging.random.bytes(16)),
      caseSensitive: await isCaseSensitive(staging),
      root: relative,
    }));
  if (decided.root === relative) return decided;
  const found = await resolveRoot(disk, directory, decided);
  const message =
    `The locks in ${directory} are of the tree ${found}, not of ${root}: in another tree what was committed would be ` +
    `done to other files. Give ${root} a ground of its own.`;
  throw holdfastError("WRONG_STORE", message, { path: directory, expected: root, found });
}

/** The tree of the ground in `directory`; undefined until something was locked. */
export async function findTree(disk: Disk, directory: string): Promise<string | undefined> {
  const decided = await findDecision(disk, namesKind, namesPath(directory));
  return decided && (await resolveRoot(disk, directory, decided));
}

async function resolveRoot(disk: Disk, directory: string, { root }: LockNames): Promise<string> {
  return posix.join(await disk.realPath(directory), root);
}

function namesPath(directory: string): string {
  return `${directory}/names.json`;
}

const namesKind: RecordKind<LockNames> = {
  kind: "names",
  decode: (value) => {
    // Grounds without this field lie in the tree that they lock.
    const { id, caseSensitive, root = ".." } = objectOf(value);
    return { id: textOf(id), caseSensitive: flagOf(caseSensitive), root: textOf(root) };
  },
};

async function isCaseSensitive(staging: Staging): Promise<boolean> {
  const probe = await stage(staging, new Uint8Array(), {
    sync: false,
    path: `${await staging.directory()}/case-${randomName(staging.random.bytes(16))}`,
  });
  try {
    return !(await staging.disk.canOpen(probe.replace(/case-.*$/, (name) => name.toUpperCase())));
  } finally {
    await discard(staging, probe);
  }
}
