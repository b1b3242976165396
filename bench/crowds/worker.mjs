// A process that works on a path, key or file of its own in a folder that others use, too: one caller, one call after the
// other, for as long as it is told.
import { setTimeout as sleep } from "node:timers/promises";
import { openFiles } from "../../dist/files/index.js";
import { openPathLocks } from "../../dist/locks/index.js";
import { openNodePorts } from "../../dist/ports/node/ports.js";
import { ownCpuUs } from "../cpu.mjs";
import { openHoldfast as openLog } from "../events/contestants.mjs";
import { openHoldfast as openBox } from "../handoff/contestants.mjs";
import { body, openHoldfast as openObjects } from "../objects/contestants.mjs";
import { answerQuestions } from "../processes.mjs";

const own = `own-${process.pid}`;
const timeoutMs = 60_000;

const parts = {
  async locks(directory) {
    const locks = await openPathLocks(directory, { timeoutMs });
    return { call: async () => (await locks.acquire(own)).release(), close: () => locks.close() };
  },
  async events(directory) {
    const { append, close } = await openLog(directory);
    return { call: append, close };
  },
  files: (directory) => openTree(directory, { index: false }),
  "indexed files": (directory) => openTree(directory, {}),
  async put(directory) {
    const { bucket, close } = await openObjects(await openNodePorts(directory), directory);
    return { call: () => bucket.put(own, body), close };
  },
  async publish(directory) {
    const { publishWithKey, close } = await openBox(await openNodePorts(directory), directory);
    return { call: publishWithKey, close };
  },
};

async function openTree(directory, options) {
  const files = await openFiles(directory, { timeoutMs, ...options });
  let n = 0;
  return {
    call: () => files.write(`${own}/${++n % 50}.md`, `# Note\n\nbear number ${n}\n`),
    close: () => files.close(),
  };
}

let opened;

const tasks = {
  async open({ part, directory }) {
    opened = await parts[part](directory);
    await opened.call();
  },
  /** How many calls were made, and the processor time of this process for them. */
  async work({ fromMs, untilMs }) {
    await sleep(Math.max(0, fromMs - Date.now()));
    const before = ownCpuUs();
    let count = 0;
    for (; Date.now() < untilMs; count++) await opened.call();
    return { count, cpuUs: ownCpuUs() - before };
  },
};

answerQuestions(tasks, async () => opened?.close());
