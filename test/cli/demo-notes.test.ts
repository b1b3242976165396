// The audit of the notes: every note is where its receipt says, and what a living workstation does meanwhile is in order.
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { noteKeeping } from "../../src/cli/demo/stations/note-keeping.ts";
import { openSharedFolder, type SharedFolder, type Receipt } from "../../src/cli/demo/stations/station.ts";
import { openFiles } from "../../src/files/index.ts";
import { makeScratch } from "../sites/scratch.ts";

const clerk = { workstation: "till-01", session: "0a1b2c3d" };
const options = { signal: new AbortController().signal, forgets: false };

/** Notes that stay, are moved, and are removed: one of each. */
async function keepNotes(): Promise<{ readonly place: SharedFolder; readonly receipts: readonly Receipt[] }> {
  const place = await openSharedFolder(join(makeScratch(), "shop"), "test");
  onTestFinished(() => place.ground.close());
  const station = await noteKeeping.open(place, clerk);
  const receipts: Receipt[] = [];
  for (const sequence of [1, 9, 17]) {
    const receipt = await station.work(sequence, options);
    if (receipt !== undefined) receipts.push(receipt);
  }
  await station.close();
  return { place, receipts };
}

const inOrder = { lost: [], doubled: [], disorder: [] };

test("counts a note that was removed also when its receipt is not known any more", async () => {
  const { place, receipts } = await keepNotes();
  expect(await noteKeeping.audit(place, receipts)).toMatchObject({ acknowledged: 3, found: 3, ...inOrder });
  expect(await noteKeeping.audit(place, [])).toMatchObject({ acknowledged: 0, found: 3, ...inOrder });
});

test("names a note that is not where it was left", async () => {
  const { place, receipts } = await keepNotes();
  await using notes = await openFiles(join(place.directory, "notes"));
  await notes.remove("archive/0a1b2c3d/note0a1b2c3dn17.md");
  const { lost, found } = await noteKeeping.audit(place, receipts);
  expect(found).toBe(2);
  expect(lost).toEqual(["note 17 of till-01: found at no path, not at archive/0a1b2c3d/note0a1b2c3dn17.md"]);
});

test("takes no lock of a workstation that is at work for one that is left", async () => {
  const { place, receipts } = await keepNotes();
  await using notes = await openFiles(join(place.directory, "notes"));
  const locks = await notes.locks();
  const over = new AbortController();
  // At every moment it holds a lock, and none for long.
  const working = (async () => {
    let hold = await locks.acquire("desk/0");
    for (let number = 1; !over.signal.aborted; number++) {
      const next = await locks.acquire(`desk/${number}`);
      await hold.release();
      hold = next;
    }
    await hold.release();
  })();
  const findings = await noteKeeping.audit(place, receipts);
  over.abort();
  await working;
  expect(findings).toMatchObject({ found: 3, ...inOrder });
});
