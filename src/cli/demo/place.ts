// The folder of a demo: where it is, who makes it, and how it goes away again.
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGround, type Disk } from "../../durable/index.ts";
import type { Place } from "./station.ts";

/** A folder that nobody else has, where temporary files are. */
export function newTemporaryDirectory(): string {
  return join(tmpdir(), `holdfast-demo-${randomBytes(6).toString("hex")}`);
}

/** Makes the folder if it is not there. `name` is what others see this process under. */
export async function openPlace(directory: string, name: string): Promise<Place> {
  const ground = await openGround(join(directory, "ground"), { name });
  // As the library writes it: absolute, with forward slashes on every platform.
  const absolute = ground.layout.directory.slice(0, -"/ground".length);
  return { directory: absolute, disk: ground.ports.disk, ground };
}

/** Everything in it and the folder itself. Only for one that this process has made. */
export async function removeTree(disk: Disk, directory: string): Promise<void> {
  for (const name of await disk.list(directory)) {
    const path = `${directory}/${name}`;
    if ((await disk.stat(path)).kind === "directory") await removeTree(disk, path);
    else await disk.unlink(path);
  }
  await disk.rmdir(directory);
}
