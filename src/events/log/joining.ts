// Opening a log, also to read it, writes beside it: this process joins the ground, and opens the files of the gate. Where it may not, that is told in whole, and not by the
// first call that fails.
import { holdfastError, isHoldfastError } from "../../errors.ts";

/** What `join` gives. NO_PERMISSION with what to do. */
export async function joining<T>(directory: string, join: () => Promise<T>): Promise<T> {
  try {
    return await join();
  } catch (error) {
    if (!isHoldfastError(error, "NO_PERMISSION")) throw error;
    const message = `This process may not write to ${directory}, and has to also where it only reads a log: to .holdfast, where it says that it is there, and to .store.lock. Let this user write there; or copy the directory to where he may, and open the copy (of a backup, or of a read-only mount). Nothing was changed. The first call that failed: ${error.message}.`;
    throw holdfastError("NO_PERMISSION", message, { path: directory }, error);
  }
}
