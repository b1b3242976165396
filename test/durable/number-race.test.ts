// The race for a number by files that were staged once, and what a failed link means for one whose beginning is the proof.
import { describe, expect, it } from "vitest";
import { NumberRace, type Contender } from "../../src/durable/chain/number-race.ts";
import { linkOnce } from "../../src/durable/publish/publish.ts";
import { diskError } from "../../src/ports/disk-error.ts";
import { changedDisk, places, readText, withDisk, type Place } from "../sites/disks.ts";

const body = "body ".repeat(1000);

async function stageVersion({ staging: { disk }, temp }: Place, name: string): Promise<Contender> {
  const path = `${temp}/${name}`;
  await disk.createFile(path, Buffer.from(`version ${name}\n${body}`), { sync: false });
  return { temp: path, proof: Buffer.from(`version ${name}\n`), isPrefix: true };
}

function raceIn({ staging, directory }: Place): NumberRace {
  return new NumberRace(staging.disk, (number) => `${directory}/${number}`);
}

/** Links that are done, and whose answer is this. */
const answering = (place: Place, errno: string): Place =>
  withDisk(place, (real) => ({
    link: async (from, to) => {
      await real.link(from, to).catch(() => undefined);
      throw diskError(errno, "link", to);
    },
  }));

describe.each(places)("a race for a number on %s", (_, make) => {
  it("gives each number to one file, which is staged once and tried under the next", async () => {
    const place = await make();
    const versions = await Promise.all(["a", "b", "c", "d"].map((name) => stageVersion(place, name)));
    const race = raceIn(place);
    const numbers = await Promise.all(
      versions.map(async (version) => {
        for (let number = 1; ; number++) if (await race.win(number, version)) return number;
      }),
    );
    expect(numbers.toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
    for (const [index, name] of ["a", "b", "c", "d"].entries())
      expect(await readText(place.staging.disk, `${place.directory}/${numbers[index]}`)).toBe(
        `version ${name}\n${body}`,
      );
  });

  it.each(["EEXIST", "EIO", "EHOSTDOWN"])("knows its own file by its beginning after %s", async (errno) => {
    const place = await make();
    const version = await stageVersion(place, "a");
    expect(await raceIn(answering(place, errno)).win(1, version)).toBe(true);
  });

  it.each(["version b\n", `version b\n${body}`, "", "version"])(
    "takes a file that begins otherwise for another's: %j",
    async (content) => {
      const place = await make();
      await place.staging.disk.createFile(`${place.directory}/1`, Buffer.from(content), { sync: false });
      expect(await raceIn(answering(place, "EEXIST")).win(1, await stageVersion(place, "a"))).toBe(false);
    },
  );

  it("makes the number before durable, unless this process has seen that it is", async () => {
    const place = await make();
    const synced: string[] = [];
    const disk = changedDisk(place.staging.disk, (real) => ({
      link: async (from, to) => {
        synced.push(`link ${to.slice(to.lastIndexOf("/") + 1)}`);
        await real.link(from, to);
      },
      syncDirectory: async (path) => {
        synced.push("sync");
        await real.syncDirectory(path);
      },
    }));
    await raceIn(place).win(1, await stageVersion(place, "a"));
    const race = new NumberRace(disk, (number) => `${place.directory}/${number}`);
    for (const [index, name] of ["b", "c"].entries()) await race.win(index + 2, await stageVersion(place, name));
    expect(synced).toEqual(["sync", "link 2", "sync", "link 3", "sync"]);
  });

  it("syncs nothing where nothing has to survive a power cut", async () => {
    const place = withDisk(await make(), () => ({
      syncDirectory: (path) => Promise.reject(diskError("EIO", "sync", path)),
    }));
    const race = new NumberRace(place.staging.disk, (number) => `${place.directory}/${number}`, { sync: false });
    for (const number of [1, 2]) expect(await race.win(number, await stageVersion(place, `${number}`))).toBe(true);
  });

  it("is OUTCOME_UNKNOWN when the name is made and cannot be made durable", async () => {
    const place = await make();
    const version = await stageVersion(place, "a");
    const broken = withDisk(place, () => ({ syncDirectory: (path) => Promise.reject(diskError("EIO", "sync", path)) }));
    await expect(raceIn(broken).win(1, version)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });
});

describe.each(places)("a link whose proof is the beginning of the file on %s", (_, make) => {
  it("is OUTCOME_UNKNOWN when the answer was lost and the beginning cannot be read", async () => {
    const place = await make();
    const { temp, proof } = await stageVersion(place, "a");
    const { disk } = withDisk(answering(place, "EIO"), () => ({
      open: (path) => Promise.reject(diskError("EIO", "open", path)),
    })).staging;
    await expect(
      linkOnce(disk, temp, `${place.directory}/1`, proof, { mayRepeat: false, isPrefix: true }),
    ).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  });
});
