// Acquire and release without contention: how often a second, and by how many operations.
import { mkdirSync } from "node:fs";
import { contestants, flockNote, hasFlock } from "./contestants.mjs";
import { countedWorld, usersWorld } from "./worlds.mjs";

const wx = "wx, unlink";
const wxWrite = "wx, write, unlink";
const targets = {
  "store lock": [{ ratioMin: 20, of: wx }],
  "path lock": [{ ratioMin: 0.35, of: wxWrite }, { operationsMax: 6 }],
};

export async function uncontendedGroup({ directory, ground, counts }) {
  const counted = countedWorld(ground, counts);
  const opened = [];
  const open = async (name, where, world) => {
    mkdirSync(where);
    const lock = await contestants[name](where, world);
    opened.push(lock);
    return async () => (await lock.acquire())();
  };
  const contenders = [];
  for (const [index, fullName] of Object.keys(contestants).entries()) {
    // What they do when they have to wait makes no difference here.
    if (fullName.endsWith("10 ms") || (fullName === "flock(1)" && !hasFlock)) continue;
    const name = fullName.replace(/[,;] (poll|retry) .*/, "");
    contenders.push({
      name,
      call: await open(fullName, `${directory}/users-${index}`, usersWorld),
      countedCall: await open(fullName, `${directory}/counted-${index}`, counted),
      targets: targets[name],
    });
  }
  return {
    title: `locks: acquire and release, uncontended${flockNote}`,
    baseline: wx,
    contenders,
    close: () => Promise.all(opened.map((lock) => lock.close())),
  };
}
