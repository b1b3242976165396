// A committed redo as the lock table records it, for whichever process applies it: the changes of the
// tree, in order. And its paths: its staged steps, its mark, the trash, and its targets in the tree.
import { flagOf, listOf, objectOf, textOf } from "../../format/decoding.ts";
import { isId } from "../../format/id.ts";
import { claimOf, type Claim } from "../table/conflict.ts";
import { isWithin } from "../../format/path-key.ts";
import type { Ports } from "../../ports/ports.ts";

/**
 * One change of the tree. `in`: the staged file or directory becomes the target. `out`: the target
 * is removed. `move`: the source becomes the target. Paths are relative to the root of the locks,
 * spelled as on the disk.
 */
export type RedoStep =
  | { readonly kind: "in"; readonly target: string }
  | { readonly kind: "out"; readonly target: string }
  | { readonly kind: "move"; readonly source: string; readonly target: string };

export interface Redo {
  /** Id of the redo, of the append that committed it, and of its directory. */
  readonly id: string;
  /** The request under which it was committed. */
  readonly request: string;
  /**
   * The claims of that request. A process that needs any of these paths completes the redo first.
   */
  readonly claims: readonly Claim[];
  readonly steps: readonly RedoStep[];
  /**
   * The redo has one step, and `redo/<id>` itself is the content of an `in`, or the directory of an
   * `out` or a `move`. When `redo/<id>` is gone, the redo is done.
   */
  readonly flat?: boolean;
}

export function redoOf(value: unknown): Redo {
  const { id, request, claims, steps, flat } = objectOf(value);
  const names = { id: nameOf(id), request: nameOf(request) };
  const redo = { ...names, claims: listOf(claims, claimOf), steps: listOf(steps, stepOf) };
  if (flat === undefined) return redo;
  if (redo.steps.length !== 1) throw new TypeError("a flat redo has one step");
  return { ...redo, flat: flagOf(flat) };
}

function stepOf(value: unknown): RedoStep {
  const { kind, source, target } = objectOf(value);
  switch (kind) {
    case "in":
    case "out":
      return { kind, target: pathOf(target) };
    case "move":
      return { kind, source: pathOf(source), target: pathOf(target) };
    default:
      throw new TypeError("not a step");
  }
}

/** Checks the path: a record that was edited by hand must not lead out of the tree. */
function pathOf(value: unknown): string {
  const path = textOf(value);
  if (
    path === "" ||
    path.includes("\0") ||
    path.split("/").some((name) => name === "" || name === "." || name === "..")
  )
    throw new TypeError("not a path below the root");
  return path;
}

/**
 * Checks the name of a request or redo: its holder's id and a random part. It becomes a path, and a
 * record that was edited by hand must not lead out of the ground.
 */
export function nameOf(value: unknown): string {
  const name = textOf(value);
  const [holder = "", random = "", ...more] = name.split(".");
  if (!isId(holder) || !/^[0-9a-z]+$/.test(random) || more.length > 0)
    throw new TypeError("not the name of a request or a redo");
  return name;
}

/** Where the redos of one lock table are. */
export interface RedoFiles {
  readonly ports: Pick<Ports, "disk" | "clock" | "random">;
  /** Root of the tree that the steps change; undefined for locks without a tree. */
  readonly root: string | undefined;
  /** The directory of the ground. */
  readonly directory: string;
}

export function redoDirectory({ directory }: RedoFiles, id: string): string {
  return `${directory}/redo/${id}`;
}

export function doneDirectory({ directory }: RedoFiles, id: string): string {
  return `${directory}/done/${id}`;
}

export function trashDirectory({ directory }: RedoFiles): string {
  return `${directory}/trash`;
}

/** True if changing `path` would change the ground. Ignores case, because some disks do. */
export function isInGround(files: RedoFiles, path: string): boolean {
  const [ground, target] = [fold(files.directory), fold(targetOf(files, path))];
  return isWithin(target, ground) || isWithin(ground, target);
}

function fold(path: string): string {
  return path.normalize("NFC").toLowerCase();
}

/** Returns the absolute path of a target. Throws TypeError for locks without a tree. */
export function targetOf({ root, directory }: RedoFiles, path: string): string {
  if (root === undefined) throw new TypeError(`The locks in ${directory} were opened without a tree, and change none.`);
  return `${root}/${path}`;
}
