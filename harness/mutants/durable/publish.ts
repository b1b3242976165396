// Known-wrong variants of publish.
import { outcomeUnknown, putIfAbsent, replace } from "../../../src/durable/publish/publish.ts";
import type { Staging } from "../../../src/durable/publish/staging.ts";
import { hasErrno } from "../../../src/ports/disk-error.ts";
import type { Disk } from "../../../src/ports/disk.ts";
import { mustHold, type Scenario } from "../../../src/testing/explorer/scenario.ts";
import { publishScenarios, type Publishing } from "../../scenarios/durable/publish.ts";
import { scenarioNamed, type Mutant } from "../mutant.ts";

/** A disk that skips the given operations. */
function lazyDisk(disk: Disk, lazy: { readonly files?: boolean; readonly directories?: boolean }): Disk {
  return {
    volume: disk.volume,
    createFile: (path, bytes, options) => disk.createFile(path, bytes, lazy.files ? { sync: false } : options),
    readFile: (path, bytesMax) => disk.readFile(path, bytesMax),
    canOpen: (path) => disk.canOpen(path),
    open: (path, mode, options) => disk.open(path, mode, options),
    link: (from, to) => disk.link(from, to),
    rename: (from, to) => disk.rename(from, to),
    unlink: (path) => disk.unlink(path),
    mkdir: (path) => disk.mkdir(path),
    rmdir: (path) => disk.rmdir(path),
    list: (path) => disk.list(path),
    listSome: (path, count) => disk.listSome(path, count),
    stat: (path) => disk.stat(path),
    findStat: (path) => disk.findStat(path),
    look: (path) => disk.look(path),
    realPath: (path) => disk.realPath(path),
    hasLink: (root, path) => disk.hasLink(root, path),
    readLink: (path) => disk.readLink(path),
    syncDirectory: async (path) => (lazy.directories ? undefined : disk.syncDirectory(path)),
  };
}

function lazyPublishing(lazy: Parameters<typeof lazyDisk>[1]): Publishing {
  const put: Publishing["putIfAbsent"] = (staging, target, bytes) =>
    putIfAbsent({ ...staging, disk: lazyDisk(staging.disk, lazy) }, target, bytes);
  return { putIfAbsent: put, replace: async () => undefined };
}

/**
 * The temp name of every process with pid 1, opened whether it exists or not, as `open(…, "w")`
 * does.
 */
const pidNamed: Publishing = {
  putIfAbsent: async ({ disk }, target, bytes) => {
    const temp = `${target}.1.tmp`;
    const file = await disk.open(temp, "create").catch(() => disk.open(temp, "write"));
    await file.write(0, bytes);
    await file.sync();
    await file.close();
    try {
      await disk.link(temp, target);
    } catch (error) {
      if (hasErrno(error, "EEXIST", "ENOENT")) return false;
      throw error;
    }
    await disk.syncDirectory("/shared");
    return true;
  },
  replace: async () => undefined,
};

const order = "/shared/order.json";

/** Deletes temp files that seem old, and takes a rename whose temp file is gone for done. */
const sweptByAge: Scenario = {
  name: "publish: replace against a sweeper by age",
  about: "The writer sleeps between its temp file and the rename; a sweeper deletes what is an hour old.",
  tempIsShared: true,
  pauses: { ms: 7_200_000, count: 1, actors: ["ada"] },
  setup: async ({ disk }) => {
    for (const path of ["/temp", "/shared"]) await disk.mkdir(path);
  },
  actors: {
    ada: {
      run: async ({ ports, note }) => {
        const staging: Staging = { disk: ports.disk, random: ports.random, directory: async () => "/temp" };
        await replaceTrustingAbsence(staging, order, Buffer.from("new"));
        note("published");
      },
    },
    sweeper: {
      run: async ({ ports: { disk, clock } }) => {
        for (let round = 0; round < 2; round++) {
          for (const name of await disk.list("/temp")) {
            const { mtimeMs } = await disk.stat(`/temp/${name}`);
            if (clock.wallMs() - mtimeMs > 3_600_000) await disk.unlink(`/temp/${name}`);
          }
          await clock.sleep(5_400_000);
        }
      },
    },
  },
  audit: async ({ disk }, facts) => {
    if (facts.some(({ what }) => what === "published"))
      mustHold(await disk.canOpen(order), "the file was acknowledged and is not there");
  },
};

async function replaceTrustingAbsence(staging: Staging, target: string, bytes: Uint8Array): Promise<void> {
  const temp = `${await staging.directory()}/${staging.random.fraction()}`;
  await staging.disk.createFile(temp, bytes, { sync: true });
  try {
    await staging.disk.rename(temp, target);
  } catch (error) {
    if (!hasErrno(error, "ENOENT")) throw error;
  }
}

/** Takes the reply to a rename for what happened. */
const movingByAnswer: Publishing = {
  putIfAbsent,
  replace,
  moveOnce: async (disk, from, to) => {
    try {
      await disk.rename(from, to);
      return true;
    } catch (error) {
      if (hasErrno(error, "ENOENT", "ESTALE")) return false;
      throw outcomeUnknown(to, error);
    }
  },
};

/** Checks only the target: if it does not exist, another process must have moved the source. */
const movingByTarget: Publishing = {
  putIfAbsent,
  replace,
  moveOnce: async (disk, from, to) => {
    try {
      await disk.rename(from, to);
      return true;
    } catch {
      return await disk.canOpen(to);
    }
  },
};

const taking = "publish: two take one ticket, old answers and lost replies";
const weakPut = "publish: put if absent, power cuts (weak)";

export const publishMutants: readonly Mutant[] = [
  {
    name: "publish without file sync",
    about: "The name becomes durable before the content.",
    scenario: scenarioNamed(publishScenarios(lazyPublishing({ files: true })), weakPut),
    breaks: /after a power cut/,
  },
  {
    name: "publish without directory sync",
    about: "The content is durable, the name is not.",
    scenario: scenarioNamed(publishScenarios(lazyPublishing({ directories: true })), weakPut),
    breaks: /after a power cut/,
  },
  {
    name: "publish with a temp name made of the pid",
    about: "Two containers, both pid 1, write into each other's temp file.",
    scenario: scenarioNamed(publishScenarios(pidNamed), "publish: put if absent, power cuts (share)"),
    breaks: /was acknowledged, but the file is|a reader saw/,
  },
  {
    name: "publish with temps swept by age",
    about: "The writer takes its swept temp file for a finished publish.",
    scenario: sweptByAge,
    breaks: /acknowledged and is not there/,
  },
  {
    name: "move by what the rename says",
    about: "A repeated request finds no source, because the first request moved it.",
    scenario: scenarioNamed(publishScenarios(movingByAnswer), taking),
    breaks: /was told that another has the ticket, and has it/,
  },
  {
    name: "move by a look at the target alone",
    about: "The client answered from its cache that there is no source, or used a stale handle: nothing was moved.",
    scenario: scenarioNamed(publishScenarios(movingByTarget), taking),
    breaks: /all were told that another has the ticket, and it lies there/,
  },
];
