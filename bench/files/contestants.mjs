// The ways to change a file that are compared: the bare file operations with the syncs that make them durable, and a
// tree of Holdfast's, in which the same happens under a lock, by redo, and is announced.
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, unlinkSync, writeFileSync, writeSync } from "node:fs";
import { FolderFiles } from "../../dist/files/files.js";
import { IndexedFiles } from "../../dist/files/indexed-files.js";
import { openTree } from "../../dist/files/tree/open-tree.js";
import { openNodeFolder } from "../../dist/ports/node/ports.js";

export const body = Buffer.alloc(1024, "x");
/** How many callers a process has at the same time where several are measured. */
export const inFlight = 16;

function syncDirectory(path) {
  const fd = openSync(path, "r");
  fsyncSync(fd);
  closeSync(fd);
}

/** Gives the next file of many that are there. They are made without a sync, and mostly by `fill`, which is not timed. */
class Supply {
  #directory;
  #made = 0;
  #taken = 0;

  constructor(directory) {
    mkdirSync(directory, { recursive: true });
    this.#directory = directory;
  }

  fill = () => {
    if (this.#made - this.#taken < 200)
      for (let count = 0; count < 1000; count++) writeFileSync(`${this.#directory}/${++this.#made}`, body);
    // What was just made must not be a part of the first sync that is timed.
    syncDirectory(this.#directory);
  };

  take() {
    if (this.#taken === this.#made) this.fill();
    return String(++this.#taken);
  }
}

/** Temp file, fsync, rename, fsync of the directory; unlink, fsync; rename, fsync of both directories. */
export function openByHand(directory) {
  const names = ["one", "two"].map((name) => `${directory}/${name}`);
  for (const name of names) mkdirSync(name, { recursive: true });
  const supply = new Supply(`${directory}/supply`);
  writeFileSync(`${names[0]}/moving`, body);
  let n = 0;
  let at = 0;
  return {
    write: async () => {
      const temp = `${names[0]}/temp-${++n}`;
      const fd = openSync(temp, "wx");
      writeSync(fd, body);
      fsyncSync(fd);
      closeSync(fd);
      renameSync(temp, `${names[0]}/file`);
      syncDirectory(names[0]);
    },
    remove: async () => {
      unlinkSync(`${directory}/supply/${supply.take()}`);
      syncDirectory(`${directory}/supply`);
    },
    move: async () => {
      renameSync(`${names[at]}/moving`, `${names[1 - at]}/moving`);
      for (const name of names) syncDirectory(name);
      at = 1 - at;
    },
    prepare: supply.fill,
  };
}

/** `index`: with tickets for the index, which no process works on here. */
export async function openHoldfast(ports, directory, { index = false } = {}) {
  mkdirSync(directory, { recursive: true });
  const opened = await openTree(ports, directory);
  const files = index
    ? await IndexedFiles.open(opened, { work: false, openFolder: openNodeFolder })
    : new FolderFiles(opened);
  await files.write("one/file", body);
  await files.write("one/moving", body);
  await files.write("two/file", body);
  const supply = new Supply(`${directory}/supply`);
  let at = "one";
  return {
    files,
    write: () => files.write("one/file", body),
    writeMany: () =>
      Promise.all(Array.from({ length: inFlight }, (_, index) => files.write(`one/many-${index}`, body))),
    remove: () => files.remove(`supply/${supply.take()}`),
    move: async () => {
      const to = at === "one" ? "two" : "one";
      await files.move(`${at}/moving`, `${to}/moving`);
      at = to;
    },
    prepare: supply.fill,
    close: () => files.close(),
  };
}
