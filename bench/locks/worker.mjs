// A process of the bench: takes locks and lets go of them as its parent says, and tells when.
import { closeSync, constants, openSync, readSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { answerQuestions } from "../processes.mjs";
import { contestants } from "./contestants.mjs";
import { monotonicMs } from "./monotonic.mjs";
import { usersWorld } from "./worlds.mjs";

/** By directory. Kept open, as users do. */
const opened = new Map();
const releases = new Map();

const tasks = {
  /** When it was ours. */
  async acquire({ name, directory }) {
    const lock = await open(name, directory);
    const release = await lock.acquire();
    const atMs = monotonicMs();
    releases.set(directory, release);
    return atMs;
  },

  /** When we began to let go. */
  async release({ directory }) {
    const release = releases.get(directory);
    const atMs = monotonicMs();
    await release();
    return atMs;
  },

  open: async ({ name, directory }) => void (await open(name, directory)),

  /**
   * `callers` take it as often as they can, and count in a file what only the holder may change.
   * How often they did, and by how much time of a core.
   */
  async contend({ name, directory, callers, fromMs, untilMs }) {
    const lock = await open(name, directory);
    const fd = openSync(`${directory}/counter`, constants.O_RDWR | constants.O_CREAT);
    const counter = new BigUint64Array(1);
    let count = 0;
    await sleep(fromMs - monotonicMs());
    const before = process.cpuUsage();
    const call = async () => {
      while (monotonicMs() < untilMs) {
        const release = await lock.acquire();
        // Callers that wait when the time is up still get it, one after another.
        if (monotonicMs() < untilMs) {
          readSync(fd, counter, 0, 8, 0);
          counter[0]++;
          writeSync(fd, counter, 0, 8, 0);
          count++;
        }
        await release();
      }
    };
    await Promise.all(Array.from({ length: callers }, call));
    closeSync(fd);
    return { count, cpuMs: cpuMsSince(before) };
  },

  /** Holds `count` paths below a root, each by a hold of its own, until this process ends. */
  async holdMany({ directory, from = 0, count }) {
    const locks = await usersWorld.openPathLocks(directory);
    for (let i = from; i < count; i++) releases.set(i, await locks.acquire(`held-${i}`));
  },

  /** The part of a core that it takes to wait for what another process holds. */
  async waitIdly({ name, directory, settleMs, waitMs }) {
    const lock = name === undefined ? undefined : await open(name, directory);
    const waiting = lock?.acquire();
    await sleep(settleMs);
    const before = process.cpuUsage();
    const startMs = monotonicMs();
    await sleep(waitMs);
    const part = cpuMsSince(before) / (monotonicMs() - startMs);
    // In the end the parent lets go. If it ends before that, the outcome of this wait does not
    // matter.
    waiting?.then((release) => release()).catch(() => undefined);
    return part;
  },
};

function cpuMsSince(before) {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

async function open(name, directory) {
  if (!opened.has(directory)) opened.set(directory, contestants[name](directory, usersWorld));
  return await opened.get(directory);
}

answerQuestions(tasks, () => Promise.allSettled([...opened.values()].map(async (lock) => (await lock).close())));
