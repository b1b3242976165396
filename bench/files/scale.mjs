// What an operation costs in a tree of few files and in one of many: its locks do not depend on what lies around them.
import { mkdirSync, writeFileSync } from "node:fs";
import { timeCalls } from "../measure.mjs";
import { printTable, ratio, verdict } from "../report.mjs";
import { sized } from "../settings.mjs";
import { body, openHoldfast } from "./contestants.mjs";

const [few, many] = [10, sized(50_000, 500)];
const filesPerDirectory = 50;
/** Equal but for noise. */
const ratioMax = 1.25;

export async function scaleGroup({ directory, ground, counts }) {
  return { run: () => run(directory, ground.ports, counts) };
}

async function run(directory, ports, counts) {
  const trees = {};
  for (const [name, files] of Object.entries({ few, many })) {
    fill(`${directory}/${name}/around`, files);
    trees[name] = await openHoldfast(ports, `${directory}/${name}`);
  }
  const calls = {
    write: (tree) => tree.write(),
    remove: (tree) => tree.remove(),
    move: (tree) => tree.move(),
    "move of the directory that has them": moveAround,
  };
  const rows = [];
  for (const [name, call] of Object.entries(calls)) {
    const operations = {};
    for (const [size, tree] of Object.entries(trees)) {
      tree.prepare();
      operations[size] = await countOperations(() => call(tree), counts);
    }
    const times = await timeCalls(
      { few: () => call(trees.few), many: () => call(trees.many) },
      { callsPerRound: name === "remove" ? 5 : 10 },
    );
    const slower = times.get("many").ms / times.get("few").ms;
    rows.push({
      name,
      figures: [ratio(slower), `${times.get("many").ms.toFixed(2)} ms`, `${operations.many} operations`],
      notes: [
        verdict(`≤ ${ratioMax} ×`, slower <= ratioMax),
        verdict("as many operations", operations.many === operations.few),
      ],
    });
  }
  printTable(`files: in a tree of ${many} files (ratio to one of ${few})`, rows);
  for (const tree of Object.values(trees)) await tree.close();
}

/** The least of a few: now and then a call also collects what is old. */
async function countOperations(call, counts) {
  const totals = [];
  for (let calls = 0; calls < 4; calls++) {
    counts.reset();
    await call();
    totals.push(counts.total);
  }
  return Math.min(...totals);
}

function fill(directory, files) {
  for (let file = 0; file < files; file++) {
    const below = `${directory}/${Math.floor(file / filesPerDirectory)}`;
    if (file % filesPerDirectory === 0) mkdirSync(below, { recursive: true });
    writeFileSync(`${below}/${file}`, body);
  }
}

async function moveAround(tree) {
  const to = tree.isAway ? "around" : "away";
  await tree.files.move(tree.isAway ? "away" : "around", to);
  tree.isAway = !tree.isAway;
}
