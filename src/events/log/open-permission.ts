// Who opens a log joins its ground and opens its gate, both of which write beside the log. Reading needs neither: where nothing can be written (no permission, a read-only
// mount, a full disk), a log that is there is opened without them, and whatever writes later tries them again.
import { holdfastError, isHoldfastError } from "../../errors.ts";
import { isUnwritable } from "../../ports/disk-error.ts";

/** What `join` gives, or `look` where nothing can be written. Without a `look` that is the end, and NO_PERMISSION tells what to do. */
export async function joinOrLook<T>(
  directory: string,
  join: () => Promise<T>,
  look: (() => Promise<T>) | undefined,
): Promise<T> {
  try {
    return await join();
  } catch (error) {
    if (!isUnwritable(error)) throw error;
    if (look === undefined) throw explained(directory, error);
    return await look();
  }
}

/** A refusal to write, in whole, and not by the first call that failed. */
export function explained(directory: string, error: unknown): unknown {
  if (!isHoldfastError(error, "NO_PERMISSION")) return error;
  const message = `This process may not write to ${directory}: it can read a log there, but neither make one nor append to it. Let this user write there, and to .holdfast, segments and .store.lock in it. Nothing was changed. The first call that failed: ${error.message}.`;
  return holdfastError("NO_PERMISSION", message, { path: directory }, error);
}
