// What the contestants are made of: the library and the file system as users have them, or the same
// with every operation counted.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { ensureDirectory, Ground } from "../../dist/durable/index.js";
import { openPathLocks, openStoreLock, Semaphore } from "../../dist/locks/index.js";
import { InProcessLocks } from "../../dist/locks/semaphore/in-process.js";
import { PortsSemaphore } from "../../dist/locks/semaphore/semaphore.js";
import { createStoreLock } from "../../dist/locks/store/store-lock.js";
import { TablePathLocks } from "../../dist/locks/path/service.js";
import { countingCalls } from "../counts.mjs";

export const usersWorld = {
  fs,
  spawn,
  openPathLocks,
  openStoreLock,
  newSemaphore: (path, options) => new Semaphore(path, options),
  // As the peer ships: it brings a file system module of its own.
  properLockfileOptions: {},
};

/**
 * Wired as the entry points do it, but to ports that are counted. For looking at single calls only:
 * to be counted costs time.
 */
export function countedWorld({ ports }, counts) {
  const countedFs = countingCalls(fs, (name) => counts.add(name));
  return {
    fs: countedFs,
    spawn: countingCalls({ spawn }, (name) => counts.add(name)).spawn,
    openStoreLock: (directory, options) => createStoreLock(ports, directory, options),
    openPathLocks: async (root, options) => {
      await ensureDirectory(ports.disk, root);
      const ground = await Ground.open(ports, `${root}/.holdfast`);
      return await TablePathLocks.open(ground, { ...options, root, ownsGround: true });
    },
    newSemaphore: (path, options) =>
      new PortsSemaphore({ openPorts: async () => ports, inProcess: new InProcessLocks() }, path, options),
    properLockfileOptions: { fs: countedFs },
  };
}
