// The semaphore protocol as a stranger would write it from the specification, with nothing beyond it: exclusive create,
// write, fsync; what is too old is removed, and the create tried again; the release is an unlink.
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, unlinkSync, writeSync } from "node:fs";

const staleSeconds = 3600;
const now = () => Math.floor(Date.now() / 1000);

/** What `action` gives, or undefined when it fails with this errno. */
function unless(errno, action) {
  try {
    return action();
  } catch (error) {
    if (error.code !== errno) throw error;
    return undefined;
  }
}

/**
 * One try. `robbed` is called when the stale lock that it has read was another one by the time it was removed: the race
 * that the protocol itself has. To see that, it removes by a rename to `<lock>.<tag>`, which is an unlink to all others.
 */
export function tryAcquire(lock, tag, robbed = () => undefined) {
  for (;;) {
    const fd = unless("EEXIST", () => openSync(lock, "wx"));
    if (fd !== undefined) {
      writeSync(fd, `pid=${process.pid}\ntimestamp=${now()}\ntag=${tag}\n`);
      fsyncSync(fd);
      closeSync(fd);
      return true;
    }
    const text = unless("ENOENT", () => readFileSync(lock, "utf8"));
    if (text === undefined) continue;
    const timestamp = /^timestamp=(\d+)$/m.exec(text)?.[1];
    if (timestamp === undefined || now() - Number(timestamp) <= staleSeconds) return false;
    const aside = `${lock}.${tag}`;
    if (unless("ENOENT", () => renameSync(lock, aside) ?? true) === undefined) continue;
    if (readFileSync(aside, "utf8") !== text) robbed();
    unlinkSync(aside);
  }
}

export function release(lock) {
  unless("ENOENT", () => unlinkSync(lock));
}
