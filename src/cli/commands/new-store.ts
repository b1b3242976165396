// Creates a store for a command, if the user names a part of it and there is none yet.
import { dirname } from "node:path";
import { HoldfastError, openStore } from "../../index.ts";
import { followPath } from "../../locks/index.ts";
import { isDatabase } from "./location.ts";
import type { Run } from "../run.ts";

/**
 * Creates the store and prints a note, because the path may be mistyped. The parent directory must
 * exist: that it is missing may mean that a share is not mounted. Throws NOT_A_STORE.
 */
export async function makeNewStore(directory: string, run: Pick<Run, "output">): Promise<void> {
  if (!isDatabase(directory)) await mustHaveParent(directory);
  await (await openStore(directory)).close();
  run.output.note(`holdfast: made a new store in ${directory}`);
}

async function mustHaveParent(directory: string): Promise<void> {
  const { path, existing } = await followPath(directory);
  if (existing === path || existing === dirname(path)) return;
  const message = `The store ${directory} cannot be made: ${dirname(directory)} does not exist. Mount the share, make the directory, or correct the path.`;
  throw new HoldfastError("NOT_A_STORE", message, { path });
}
