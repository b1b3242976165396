// Serializes opens and closes of one file by this process, for NFS 4.
//
// When a machine closes its last descriptor of a file, the client sends a CLOSE, and an OPEN of the
// same file may be in flight beside it. The Linux server orders the two. Ganesha (4.3) may assign
// the OPEN to a state that the CLOSE ended. The client then waits 5 s for the reply that it
// believes missing, and asks again. Usually the second try succeeds; one open had not returned
// after four minutes. Turns go by name: a file under two names, and two processes of one machine,
// can still conflict.
import type { FileCalls } from "./file-calls.ts";

export function takingTurns(calls: FileCalls): FileCalls {
  const turns = new Map<string, Promise<unknown>>();
  const paths = new Map<number, string>();

  /** Runs after all earlier calls for `path`, whether they succeeded or not. */
  async function takeTurn<T>(path: string, call: () => T | Promise<T>): Promise<T> {
    const before = turns.get(path);
    const own = before === undefined ? Promise.resolve(call()) : before.then(call, call);
    turns.set(path, own);
    try {
      return await own;
    } finally {
      if (turns.get(path) === own) turns.delete(path);
    }
  }

  async function opened(path: string, open: () => number | Promise<number>): Promise<number> {
    const fd = await takeTurn(path, open);
    paths.set(fd, path);
    return fd;
  }

  return {
    ...calls,
    open: (path, flags, mode) => opened(path, () => calls.open(path, flags, mode)),
    openBulk: (path) => opened(path, () => calls.openBulk(path)),
    close: async (fd) => {
      const path = paths.get(fd);
      // Before the call: once the file is closed, its number may belong to another file.
      paths.delete(fd);
      await (path === undefined ? calls.close(fd) : takeTurn(path, () => calls.close(fd)));
    },
  };
}
