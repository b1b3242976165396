// Opens and closes of one file by this process take turns, for NFS 4.
//
// When the last descriptor of a file on a machine is closed, the client sends a CLOSE, and an OPEN
// of the same file may be on its way beside it. The server of Linux puts the two in an order.
// Ganesha (4.3) may count the OPEN to a state that the CLOSE has ended. The client then waits 5 s
// for the answer that it takes to be missing, and asks again. Mostly the second try succeeds; one
// open had not come back after four minutes. Turns go by name: a file under two names, and two
// processes of one machine, can still meet.
import type { FileCalls } from "./file-calls.ts";

export function takingTurns(calls: FileCalls): FileCalls {
  const turns = new Map<string, Promise<unknown>>();
  const paths = new Map<number, string>();

  /** After all calls for `path` that came before it, whatever became of them. */
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
      // Before the call: once it is closed, its number may be that of another file.
      paths.delete(fd);
      await (path === undefined ? calls.close(fd) : takeTurn(path, () => calls.close(fd)));
    },
  };
}
