// What holders that are dead have left in a lock table's directories: hold files, staged redos, and marks of done ones.
import { removeTree, unlinkIfThere } from "../durable/directory.ts";
import type { Ground } from "../durable/ground.ts";

/** A file or directory whose maker is dead. */
export interface Leftover {
  /** Of the request or redo that it belongs to. */
  readonly id: string;
  /** Who made it. */
  readonly holder: string;
  readonly path: string;
  readonly isTree: boolean;
}

/** Only of holders that are declared dead: whatever they wanted to append is in the list by now, or will never count. */
export async function findLeftovers({ ports: { disk }, layout }: Ground): Promise<Leftover[]> {
  const leftovers: Leftover[] = [];
  for (const room of ["holds", "redo", "done"])
    for (const name of await disk.list(`${layout.directory}/${room}`)) {
      const id = name.replace(/\.transfer$/, "");
      const [holder = ""] = id.split(".");
      if (await disk.canOpen(layout.deathRecord(holder)))
        leftovers.push({ id, holder, path: `${layout.directory}/${room}/${name}`, isTree: room !== "holds" });
    }
  return leftovers;
}

export async function removeLeftover({ ports: { disk } }: Ground, { path, isTree }: Leftover): Promise<void> {
  await (isTree ? removeTree(disk, path) : unlinkIfThere(disk, path));
}
