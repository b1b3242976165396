// A small write, a removal and a move, durable, one process: against the bare operations with their syncs.
import { syncsIn } from "../counts.mjs";
import { measure } from "../measure.mjs";
import { printRates, printTable, verdict } from "../report.mjs";
import { isWanted } from "../settings.mjs";
import { inFlight, openByHand, openHoldfast } from "./contestants.mjs";

const ratioMin = { write: 0.3, remove: 0.2, move: 0.2 };
const manyRatioMin = 1;
/** What a call may wait for at the disk. */
const syncsMax = { write: 7, remove: 5, move: 9 };

export async function operationsGroup({ directory, ground, counts }) {
  return { run: () => run(directory, ground.ports, counts) };
}

async function run(directory, ports, counts) {
  const byHand = openByHand(`${directory}/by-hand`);
  const plain = await openHoldfast(ports, `${directory}/plain`);
  const indexed = await openHoldfast(ports, `${directory}/indexed`, { index: true });
  const syncs = [];
  for (const [call, bare] of Object.entries({
    write: "by hand: temp, fsync, rename, fsync",
    remove: "by hand: unlink, fsync",
    move: "by hand: rename, fsync of both directories",
  })) {
    if (!isWanted(`holdfast ${call}`)) continue;
    const contender = (name, user, more) => ({ name, call: user[call], prepare: user.prepare, ...more });
    const contenders = [
      contender(bare, byHand),
      contender(`holdfast ${call}`, plain, { targets: [{ ratioMin: ratioMin[call], of: bare }] }),
      contender(`holdfast ${call}, and a ticket for the index`, indexed),
    ];
    if (call === "write")
      contenders.push({
        name: `holdfast write, ${inFlight} files at once`,
        call: plain.writeMany,
        callsPerRun: inFlight,
        countedCall: plain.write,
        targets: [{ ratioMin: manyRatioMin, of: bare }],
      });
    const results = await measure(contenders, counts);
    printRates({ title: `files: ${call} 1 KiB, durable, one process`, baseline: bare, contenders }, results);
    const count = syncsIn(results.get(`holdfast ${call}`).operations);
    const notes = [verdict(`≤ ${syncsMax[call]}`, count <= syncsMax[call])];
    syncs.push({ name: call, figures: [String(count)], notes });
  }
  printTable("files: syncs of a call, without the ticket", syncs);
  await plain.close();
  await indexed.close();
}
