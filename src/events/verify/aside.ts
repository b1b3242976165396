// Moving what nobody needs out of the way, where a person can look at it. Nothing is ever deleted.
import { ensureDirectory, parentOf, syncNames } from "../../durable/publish/directory.ts";
import { moveOnce } from "../../durable/publish/publish.ts";
import type { LogFiles } from "../log/log-files.ts";

/** Into `aside/` of the log, under a name that nothing has. False when it is gone already. */
export async function moveAside(place: LogFiles, path: string): Promise<boolean> {
  const { disk, directory } = place;
  const aside = `${directory}/aside`;
  await ensureDirectory(disk, aside);
  const name = path.slice(path.lastIndexOf("/") + 1);
  if (!(await moveOnce(disk, path, `${aside}/${name}.${place.newId()}`))) return false;
  // The new name first: a power cut may leave it in both places, never in none.
  await syncNames(disk, aside);
  await syncNames(disk, parentOf(path));
  return true;
}
