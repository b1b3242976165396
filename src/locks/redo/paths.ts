// The paths of a redo: its staged steps, its mark, the trash, and its targets in the tree.
import { isWithin } from "../../format/path-key.ts";
import type { Ports } from "../../ports/ports.ts";

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
