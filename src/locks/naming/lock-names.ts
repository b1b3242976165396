// Two facts that are decided once for the path locks of a ground: the tree that they lock, and how names are compared
// in it.
import { posix } from "node:path";
import type { NameRule } from "../../common.ts";
import { replace } from "../../durable/publish/publish.ts";
import { decideRecord, findDecision } from "../../durable/publish/record-file.ts";
import { discard, stage, type Staging } from "../../durable/publish/staging.ts";
import { holdfastError } from "../../errors.ts";
import { flagOf, objectOf, textOf } from "../../format/decoding.ts";
import { randomName } from "../../format/id.ts";
import { encodeRecord, type RecordKind } from "../../format/record.ts";
import type { Disk } from "../../ports/disk.ts";

export interface LockNames {
  readonly id: string;
  readonly caseSensitive: boolean;
  /** True if names that Windows refuses or changes are refused on every machine. */
  readonly portable: boolean;
  /** The root of the tree, relative to the directory of the ground: the path of a share differs between machines. */
  readonly root: string;
}

/** Throws TypeError. */
export function checkNameRule(call: string, names: NameRule | undefined): void {
  if (names !== undefined && !["portable", "any"].includes(names))
    throw new TypeError(`${call}: names is "portable" or "any", not ${names as string}.`);
}

/**
 * Returns the names of the ground in `directory`, for the tree at `root`. The first caller decides them, by default
 * portable ones on a share: otherwise two processes could have two keys for one file, or complete each other's redos
 * in two trees. Throws WRONG_STORE if the ground belongs to another tree.
 */
export async function decideNames(
  staging: Staging,
  directory: string,
  root: string,
  rule?: NameRule,
): Promise<LockNames> {
  const { disk } = staging;
  const path = namesPath(directory);
  const relative = posix.relative(await disk.realPath(directory), await disk.realPath(root));
  const decided =
    (await findDecision(disk, namesKind, path)) ??
    (await decideRecord(staging, namesKind, path, {
      id: randomName(staging.random.bytes(16)),
      caseSensitive: await isCaseSensitive(staging),
      portable: (rule ?? defaultRule(disk)) === "portable",
      root: relative,
    }));
  if (decided.root === relative) return { ...decided, portable: decided.portable || rule === "portable" };
  const found = await resolveRoot(disk, directory, decided);
  const message =
    `The locks in ${directory} are of the tree ${found}, not of ${root}: in another tree what was committed would be ` +
    `done to other files. Give ${root} a ground of its own.`;
  throw holdfastError("WRONG_STORE", message, { path: directory, expected: root, found });
}

/**
 * Records that the tree of the ground in `directory` is now at `root`, relative to the future location of the ground.
 * No other process may have the ground open.
 */
export async function changeTree(staging: Staging, directory: string, root: string): Promise<void> {
  const names = await findDecision(staging.disk, namesKind, namesPath(directory));
  if (names !== undefined) await replace(staging, namesPath(directory), encodeRecord(namesKind, { ...names, root }));
}

/** Returns the tree of the ground in `directory`, or undefined if nothing was ever locked. */
export async function findTree(disk: Disk, directory: string): Promise<string | undefined> {
  const decided = await findDecision(disk, namesKind, namesPath(directory));
  return decided && (await resolveRoot(disk, directory, decided));
}

async function resolveRoot(disk: Disk, directory: string, { root }: LockNames): Promise<string> {
  return posix.join(await disk.realPath(directory), root);
}

/** On a share, machines with Windows may come later, and could not even list such names. */
function defaultRule({ volume }: Disk): NameRule {
  return volume.kind === "network" ? "portable" : "any";
}

function namesPath(directory: string): string {
  return `${directory}/names.json`;
}

const namesKind: RecordKind<LockNames> = {
  kind: "names",
  decode: (value) => {
    // A ground without this field is inside the tree that it locks.
    const { id, caseSensitive, portable = false, root = ".." } = objectOf(value);
    return {
      id: textOf(id),
      caseSensitive: flagOf(caseSensitive),
      portable: flagOf(portable),
      root: textOf(root),
    };
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
