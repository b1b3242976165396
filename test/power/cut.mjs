// One cut: a new file system, processes at work on it, the power gone at some moment, and an audit
// after it was mounted again.
import { execFileSync, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

/** The least that mkfs.xfs makes. */
const imageBytes = 320 * 1024 * 1024;
const workMs = { least: 500, most: 3000 };
const roles = [
  "till",
  "import",
  "reader",
  "share-till",
  "share-reader",
  "consumer",
  "locker",
  "publisher",
  "putter",
  "filer",
];

/** `problems`: what was promised and is not so, each in words. */
export async function cut({ scratch, shutdown, fileSystem, isSameBoot, isAllSynced, sabotage }) {
  const [image, directory] = [join(scratch, "image"), join(scratch, "disk")];
  writeFileSync(image, "");
  truncateSync(image, imageBytes);
  execFileSync(`mkfs.${fileSystem}`, ["-q", image], { stdio: "inherit" });
  mkdirSync(directory, { recursive: true });
  const attach = () => execFileSync("losetup", ["--find", "--show", image], { encoding: "utf8" }).trim();
  const devices = [attach()];
  try {
    execFileSync("mount", [devices[0], directory]);
    const bootId = bootIdFile(scratch, "first");
    await withProcess(bootId, "make", { directory });
    // Who follows the log syncs what it is shown, and would make good what a writer leaves out.
    const isUnwanted = (role) =>
      (sabotage && ["reader", "consumer"].includes(role)) || (isAllSynced && role === "import");
    const workers = roles
      .filter((role) => !isUnwanted(role))
      .map((role) => new Process(bootId, role, { directory, sabotage }));
    // One that ends instead is told of below.
    await Promise.all(workers.map((worker) => Promise.race([worker.hasBegun, worker.ended])));
    await sleep(workMs.least + Math.random() * (workMs.most - workMs.least));
    execFileSync(shutdown, [directory]);
    await Promise.all(workers.map((worker) => worker.kill()));
    execFileSync("umount", [directory]);
    // A disk that is pulled and put back is another device.
    if (isSameBoot) devices.push(attach());
    execFileSync("mount", [devices.at(-1), directory]);
    const told = Object.fromEntries(roles.map((role) => [role, []]));
    for (const worker of workers) told[worker.role] = worker.told;
    const auditor = isSameBoot ? bootId : bootIdFile(scratch, "second");
    const [found] = await withProcess(auditor, "audit", { directory, told, isSameBoot });
    const silent = workers.filter((worker) => worker.told.length === 0).map(({ role }) => `${role} did nothing`);
    return { figures: found?.figures ?? "", problems: [...silent, ...(found?.problems ?? ["the audit has failed"])] };
  } finally {
    try {
      execFileSync("umount", ["--lazy", directory], { stdio: "pipe" });
    } catch {
      // It is not mounted, if that is what failed.
    }
    for (const device of devices) execFileSync("losetup", ["--detach", device]);
    rmSync(image);
  }
}

/** What a process reads as its boot id when this file is mounted over the real one. */
function bootIdFile(scratch, name) {
  const path = join(scratch, name);
  writeFileSync(path, `${randomUUID()}\n`);
  return path;
}

async function withProcess(bootId, role, task) {
  const child = new Process(bootId, role, task);
  await child.ended;
  return child.told;
}

const overBootId = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"';
const main = fileURLToPath(new URL("worker.mjs", import.meta.url));

class Process {
  role;
  /** What it has said, one value a line; a line that the cut tore is none. */
  told = [];
  hasBegun;
  ended;
  #child;

  constructor(bootId, role, task) {
    this.role = role;
    const command = ["-m", "--propagation", "private", "sh", "-c", overBootId, bootId, process.execPath, main, role];
    this.#child = spawn("unshare", command, { stdio: ["pipe", "pipe", "inherit"] });
    this.#child.stdin.on("error", () => undefined);
    this.#child.stdin.end(JSON.stringify(task));
    this.ended = new Promise((resolve) => this.#child.once("close", resolve));
    this.hasBegun = new Promise((resolve) => {
      createInterface({ input: this.#child.stdout }).on("line", (line) => {
        try {
          this.told.push(JSON.parse(line));
        } catch {
          return;
        }
        resolve();
      });
    });
  }

  async kill() {
    this.#child.kill("SIGKILL");
    await this.ended;
  }
}
